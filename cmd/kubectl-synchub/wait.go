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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// waitFlags are --wait and --timeout, which mean the same in all commands.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

// addWait adds the flags with their defaults. until completes "wait until".
func (f *waitFlags) addWait(command *cobra.Command, until string, wait bool, timeout time.Duration) {
	command.Flags().BoolVar(&f.wait, "wait", wait, "wait until "+until)
	f.addTimeout(command, timeout)
}

// addTimeout adds only --timeout, to a command that always waits.
func (f *waitFlags) addTimeout(command *cobra.Command, timeout time.Duration) {
	command.Flags().DurationVar(&f.timeout, "timeout", timeout, "how long to wait; 0 waits for ever")
}

func (f *waitFlags) checkTimeout() error {
	if f.timeout < 0 {
		return errors.New("--timeout: it must not be negative")
	}
	return nil
}

// limit returns the timeout. That of a wait for ever is longer than any program runs.
func (f *waitFlags) limit() time.Duration {
	if f.timeout == 0 {
		return math.MaxInt64
	}
	return f.timeout
}

// syncTargetWait waits for the hub to do something with a SyncTarget.
type syncTargetWait struct {
	*inventoryOptions
	waitFlags
	done func(*edgev2alpha1.SyncTarget) bool
	// describe describes a state that is not done. Its first line is shown whenever it changes, all of it after the timeout.
	describe func(*edgev2alpha1.SyncTarget) string
	// result is the resulting state of the SyncTarget, in messages.
	result string
	// notes returns lines to print before the result. It may be nil.
	notes func(*edgev2alpha1.SyncTarget) []string
}

// run waits, and prints the result. In a dry run, or without --wait, it does nothing.
func (w *syncTargetWait) run(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	if !w.wait || w.dryRun != dryRunNone {
		return nil
	}
	workspace, err := w.client()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, w.limit())
	defer cancel()
	var shown string
	last, err := registration.WatchSyncTarget(waiting, workspace, syncTarget, func(seen *edgev2alpha1.SyncTarget) bool {
		if seen == nil || w.done(seen) {
			return true
		}
		if text := firstLine(w.describe(seen)); text != shown {
			shown = text
			w.progress("%s", text)
		}
		return false
	})
	switch {
	case last == nil:
		return fmt.Errorf("the SyncTarget %s was deleted meanwhile", syncTarget.Name)
	case w.done(last):
		if w.notes != nil {
			for _, line := range w.notes(last) {
				w.note(line)
			}
		}
		return w.print(last, w.result)
	case waiting.Err() == nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("the SyncTarget %s was not %s after %s: %s", syncTarget.Name, w.result, w.timeout, w.describe(last))
}

// isReadyNow reports whether the hub has said that the SyncTarget is ready as its spec is now.
func isReadyNow(syncTarget *edgev2alpha1.SyncTarget) bool {
	ready := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
	return registration.IsReady(syncTarget) && ready.ObservedGeneration >= syncTarget.Generation
}

// isSuspendedNow reports whether the hub has said that it syncs nothing, as the spec is now.
func isSuspendedNow(syncTarget *edgev2alpha1.SyncTarget) bool {
	suspended := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSuspended)
	return suspended != nil && suspended.Status == metav1.ConditionTrue && suspended.ObservedGeneration >= syncTarget.Generation
}

// describeNotReady says why a SyncTarget is not ready.
func describeNotReady(syncTarget *edgev2alpha1.SyncTarget) string {
	if text := registration.DescribeNotReady(syncTarget); text != "" {
		return text
	}
	return "the hub has not seen the change yet"
}
