/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package assignment

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

const (
	// KeyLength is the length of the keys of an agent, in bytes.
	KeyLength = edgev2alpha1.AgentKeyLength
	// maxCompressed bounds a stored assignment: kcp refuses a ConfigMap of more than a MiB. maxAssignment bounds what a reader
	// decompresses, and maxReport a report, whose Lease may have 256 KiB of annotations.
	maxCompressed = 900 << 10
	maxAssignment = 64 << 20
	maxReport     = 128 << 10
)

// Purposes of seals. A seal of one purpose is none of the other.
const (
	purposeAssignment = "agent-assignment"
	purposeReport     = "agent-report"
)

var (
	// ErrNotSealed means that the hub, or the agent, did not write a message with the key.
	ErrNotSealed = errors.New("its seal does not verify: somebody else wrote it, or with another key")
	// ErrTooLarge means that a message is larger than can be stored.
	ErrTooLarge = errors.New("it is too large")
)

// SealAssignment returns an assignment as it is stored, with its seal.
func SealAssignment(sealer *ownership.Sealer, assignment *Assignment) (content []byte, seal string, err error) {
	text, err := json.Marshal(assignment)
	if err != nil {
		return nil, "", fmt.Errorf("cannot encode the assignment of the SyncTarget %s: %w", assignment.SyncTarget.Name, err)
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	// A buffer accepts all writes.
	_, _ = writer.Write(text)
	_ = writer.Close()
	if compressed.Len() > maxCompressed || len(text) > maxAssignment {
		return nil, "", fmt.Errorf("%w: %d bytes, and %d compressed, of which %d can be stored", ErrTooLarge, len(text), compressed.Len(), maxCompressed)
	}
	content = compressed.Bytes()
	return content, sealer.SealText(purposeAssignment, string(content)), nil
}

// OpenAssignment verifies that the hub has sealed an assignment for a mailbox, and returns it. The error is, or wraps, [ErrNotSealed] if the hub did not write it. The seal
// is verified before anything is decompressed.
func OpenAssignment(sealer *ownership.Sealer, mailbox string, content []byte, seal string) (*Assignment, error) {
	if !sealer.VerifyText(seal, purposeAssignment, string(content)) {
		return nil, ErrNotSealed
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("cannot decompress the assignment: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxAssignment+1))
	if err != nil {
		return nil, fmt.Errorf("cannot decompress the assignment: %w", err)
	}
	if len(text) > maxAssignment {
		return nil, ErrTooLarge
	}
	assignment := &Assignment{}
	if err := json.Unmarshal(text, assignment); err != nil {
		return nil, fmt.Errorf("cannot decode the assignment: %w", err)
	}
	if assignment.Mailbox != mailbox {
		return nil, fmt.Errorf("%w: it is for the mailbox %s", ErrNotSealed, assignment.Mailbox)
	}
	return assignment, nil
}

// SealReport returns a report as an annotation, with its seal. If the status is too large, its messages are cut. If that is not enough,
// only the conditions are left, and the problem says so: an agent with much to tell must not seem to be silent.
func SealReport(sealer *ownership.Sealer, report *Report) (text, seal string, err error) {
	shortened := *report
	for _, shorten := range []func(*Report){func(*Report) {}, cutMessages, keepConditions} {
		shorten(&shortened)
		content, err := json.Marshal(shortened)
		if err != nil {
			return "", "", fmt.Errorf("cannot encode the report: %w", err)
		}
		if len(content) <= maxReport {
			return string(content), sealer.SealText(purposeReport, string(content)), nil
		}
	}
	return "", "", fmt.Errorf("%w: more than the %d bytes that can be stored", ErrTooLarge, maxReport)
}

// maxShortMessage is the length to which the messages of a large report are cut, in bytes.
const maxShortMessage = 256

// cutMessages cuts all messages of a report.
func cutMessages(report *Report) {
	report.Status = *report.Status.DeepCopy()
	cut := func(message *string) {
		if len(*message) > maxShortMessage {
			*message = strings.ToValidUTF8((*message)[:maxShortMessage], "") + "…"
		}
	}
	for i := range report.Status.Conditions {
		cut(&report.Status.Conditions[i].Message)
	}
	for i := range report.Status.SyncedResources {
		cut(&report.Status.SyncedResources[i].Message)
	}
	for i := range report.Status.Failures {
		cut(&report.Status.Failures[i].Message)
	}
}

// keepConditions removes everything but the conditions from the status of a report.
func keepConditions(report *Report) {
	report.Status = edgev2alpha1.SyncTargetStatus{Conditions: report.Status.Conditions}
	if report.Problem == "" {
		report.Problem = "its status is too large to be reported"
	}
}

// OpenReport verifies that the agent of a mailbox has sealed a report, and returns it.
func OpenReport(sealer *ownership.Sealer, mailbox, text, seal string) (*Report, error) {
	if len(text) > maxReport {
		return nil, ErrTooLarge
	}
	if !sealer.VerifyText(seal, purposeReport, text) {
		return nil, ErrNotSealed
	}
	report := &Report{}
	if err := json.Unmarshal([]byte(text), report); err != nil {
		return nil, fmt.Errorf("cannot decode the report: %w", err)
	}
	if report.Mailbox != mailbox {
		return nil, fmt.Errorf("%w: it is about the mailbox %s", ErrNotSealed, report.Mailbox)
	}
	return report, nil
}
