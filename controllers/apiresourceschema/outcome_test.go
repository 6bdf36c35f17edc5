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

package apiresourceschema

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
)

func TestUpdateStatus(t *testing.T) {
	gone := &problem{ReasonSourceUnreachable, errors.New("spec.x: it is\naway")}
	for name, test := range map[string]struct {
		before  string
		outcome outcome
		// want is status.schemaName afterwards, then the status, reason and message of the condition.
		want string
	}{
		"a claim":            {"", outcome{}, " True Claimed Mailboxes do not have the API from the hub; their objects are claimed."},
		"a schema":           {"", outcome{schema: "a"}, "a True Created The APIResourceSchema is a."},
		"another schema":     {"a", outcome{schema: "b"}, "b True Created The APIResourceSchema is b."},
		"not all of it":      {"", outcome{schema: "a", notes: 3}, "a True Created The APIResourceSchema is a. It cannot express all of the definition: see its annotation synchub.dev/schema-notes (3)."},
		"a problem":          {"", outcome{problem: gone}, " False SourceUnreachable spec.x: it is; away"},
		"a later problem":    {"a", outcome{problem: gone}, "a False SourceUnreachable spec.x: it is; away. The schema a stays in force."},
		"a mistake, later":   {"a", outcome{problem: &problem{ReasonInvalid, errors.New("no")}}, "a False Invalid no. The schema a stays in force."},
		"no schema any more": {"a", outcome{}, " True Claimed Mailboxes do not have the API from the hub; their objects are claimed."},
	} {
		t.Run(name, func(t *testing.T) {
			resource := &synchubv1alpha1.PublishedResource{}
			resource.Generation, resource.Status.SchemaName = 7, test.before
			test.outcome.updateStatus(resource)
			condition := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
			got := fmt.Sprintf("%s %s %s %s", resource.Status.SchemaName, condition.Status, condition.Reason, condition.Message)
			if got != test.want || condition.ObservedGeneration != 7 {
				t.Errorf("want %s\ngot  %s", test.want, got)
			}
		})
	}
}

func TestSourceProblem(t *testing.T) {
	resource := corev1.Resource("things")
	refused := &url.Error{Op: "Get", URL: "https://192.0.2.1:6443/apis", Err: &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: 53412}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for name, test := range map[string]struct {
		err          error
		reason, want string
	}{
		"not served":   {fmt.Errorf("reading: %w", discovery.ErrNotServed), ReasonNotServed, "spec.resource: the cluster does not serve it"},
		"unusable":     {fmt.Errorf("reading: %w", &discovery.UnusableError{Reason: "its name is odd"}), ReasonInvalid, "spec.resource: mailboxes cannot serve the definition of the cluster: its name is odd"},
		"forbidden":    {apierrors.NewForbidden(resource, "a", errors.New("no")), ReasonForbidden, `spec.x: the cluster does not let the hub read the definition: things "a" is forbidden: no`},
		"unauthorized": {apierrors.NewUnauthorized("who?"), ReasonForbidden, "spec.x: the cluster does not let the hub read the definition: who?"},
		"overloaded":   {apierrors.NewServiceUnavailable("later"), ReasonSourceUnreachable, "spec.x: the definition cannot be read from the cluster: later"},
		"refused":      {fmt.Errorf("reading: %w", refused), ReasonSourceUnreachable, "spec.x: the definition cannot be read from the cluster: the request did not get through: connection refused"},
		"too slow":     {&url.Error{Op: "Get", URL: "https://192.0.2.1", Err: context.DeadlineExceeded}, ReasonSourceUnreachable, "spec.x: the definition cannot be read from the cluster: the request did not get through: it took too long"},
		"no such name": {&url.Error{Op: "Get", URL: "https://a.b", Err: &net.DNSError{Name: "a.b"}}, ReasonSourceUnreachable, "spec.x: the definition cannot be read from the cluster: the request did not get through: its name cannot be resolved"},
		"anything":     {errors.New("odd"), ReasonSourceUnreachable, "spec.x: the definition cannot be read from the cluster: odd"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sourceProblem("spec.x", "the cluster", test.err)
			if got.reason != test.reason || got.Error() != test.want {
				t.Errorf("want %s: %s\ngot  %s: %s", test.reason, test.want, got.reason, got)
			}
			if strings.Contains(got.Error(), "192.0.2.1") || strings.Contains(got.Error(), "53412") {
				t.Errorf("it names an address: %s", got)
			}
		})
	}
}
