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

package redact

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxCauses limits the causes of a Status; each cause names a field.
const maxCauses = 16

// Error returns an error with the text that [Text] returns. It wraps err, so that [errors.Is] and [errors.As] still work.
func Error(err error) error { return (*Credentials)(nil).Error(err) }

// Error is [Error] for an error from the connection.
func (c *Credentials) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	shown := c.Text(text)
	if shown == text {
		return err
	}
	return &redactedError{error: err, text: shown}
}

type redactedError struct {
	error
	text string
}

func (r *redactedError) Error() string { return r.text }

func (r *redactedError) Unwrap() error { return r.error }

// Status redacts all texts of a Status from the connection, in place. Messages keep up to limit bytes.
func (c *Credentials) Status(status *metav1.Status, limit int) {
	status.Message = c.Truncate(shortenObjectName(status), limit)
	status.Reason = metav1.StatusReason(c.Text(string(status.Reason)))
	status.Status = c.Text(status.Status)
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = c.Text(*text)
	}
	if len(details.Causes) > maxCauses {
		details.Causes = details.Causes[:maxCauses]
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type, cause.Message, cause.Field = metav1.CauseType(c.Text(string(cause.Type))), c.Truncate(cause.Message, limit), c.Text(cause.Field)
	}
}

// shortenObjectName returns the message of a Status with a long object name shortened. Otherwise truncation would drop the
// reason that follows. Every such message is shown beside the object's name anyway.
func shortenObjectName(status *metav1.Status) string {
	const shown = 40
	if status.Details == nil || len(status.Details.Name) <= 2*shown {
		return status.Message
	}
	name := status.Details.Name
	return strings.Replace(status.Message, `"`+name+`"`, `"`+Truncate(name, shown)+`"`, 1)
}
