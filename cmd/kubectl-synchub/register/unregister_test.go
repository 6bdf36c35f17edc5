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

package register

import (
	"bytes"
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// unregister deletes a SyncTarget, and lets one go by force, only after a confirmation. Standard input is no terminal here.
func TestUnregisterAsks(t *testing.T) {
	const asks = "nothing was changed: give --yes"
	for name, test := range map[string]struct {
		change      func(*unregisterOptions)
		terminating bool
		err         string
		// deleted, forced and orphaned are the results.
		deleted, forced, orphaned bool
	}{
		"without a confirmation":                   {err: asks},
		"with --force":                             {change: func(o *unregisterOptions) { o.force = true }, err: asks},
		"with --orphan":                            {change: func(o *unregisterOptions) { o.orphan = true }, err: asks},
		"confirmed":                                {change: func(o *unregisterOptions) { o.yes = true }, deleted: true},
		"confirmed, with --force":                  {change: func(o *unregisterOptions) { o.yes, o.force = true, true }, deleted: true, forced: true},
		"confirmed, with --orphan":                 {change: func(o *unregisterOptions) { o.yes, o.orphan = true, true }, deleted: true, orphaned: true},
		"being deleted: it waits":                  {terminating: true, deleted: true},
		"being deleted, with --force":              {change: func(o *unregisterOptions) { o.force = true }, terminating: true, err: asks, deleted: true},
		"being deleted, confirmed, with --force":   {change: func(o *unregisterOptions) { o.yes, o.force = true, true }, terminating: true, deleted: true, forced: true},
		"a dry run, confirmed, with --force":       {change: func(o *unregisterOptions) { o.yes, o.force, o.DryRun = true, true, cli.DryRunClient }},
		"a dry run asks nothing":                   {change: func(o *unregisterOptions) { o.DryRun = cli.DryRunClient }},
		"a dry run of the server":                  {change: func(o *unregisterOptions) { o.yes, o.force, o.DryRun = true, true, cli.DryRunServer }},
		"a dry run with --orphan, which is a flag": {change: func(o *unregisterOptions) { o.orphan, o.DryRun = true, cli.DryRunServer }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "florin-uid", Finalizers: []string{"synchub.dev/mailbox"}}}
			syncTarget.Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyDelete
			deletions := 0
			stored := fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(syncTarget).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					deletions++
					var used client.DeleteOptions
					used.ApplyOptions(options)
					if used.Preconditions == nil || used.Preconditions.UID == nil || *used.Preconditions.UID != "florin-uid" {
						t.Errorf("it deletes whatever SyncTarget has the name: %+v", used)
					}
					return to.Delete(ctx, object, options...)
				},
			}).Build()
			if test.terminating {
				g.Expect(stored.Delete(t.Context(), syncTarget.DeepCopy(), client.Preconditions{UID: &syncTarget.UID})).To(Succeed())
			}
			read := func() *edgev2alpha1.SyncTarget {
				found := &edgev2alpha1.SyncTarget{}
				g.Expect(stored.Get(t.Context(), client.ObjectKeyFromObject(syncTarget), found)).To(Succeed())
				return found
			}
			options := &unregisterOptions{InventoryOptions: cli.NewInventoryOptions(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})}
			options.DryRun = cli.DryRunNone
			if test.change != nil {
				test.change(options)
			}
			deletions = 0
			err := options.remove(t.Context(), &registration.Inventory{Client: options.WithDryRun(stored)}, read())
			if test.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
			}
			if options.DryRun == cli.DryRunClient {
				g.Expect(deletions).To(BeZero(), "a dry run of the client sends no request")
			}
			after := read()
			g.Expect(after.DeletionTimestamp != nil).To(Equal(test.deleted), "deleted")
			isForced, isOrphaned := after.Annotations[edgev2alpha1.AnnotationForceRemoval] == "true", after.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan
			g.Expect(isForced).To(Equal(test.forced), "forced")
			g.Expect(isOrphaned).To(Equal(test.orphaned), "orphaned")
		})
	}
}

// The question names what goes, and what stays on the cluster.
func TestUnregisterDescribesItsEffect(t *testing.T) {
	const deletes, keepsMarks, releases = "the hub deletes the copies from the cluster", "the copies stay there as they are, with the hub's marks", "The copies stay on the cluster, without the hub's marks"
	for name, test := range map[string]struct {
		policy        edgev2alpha1.DeletionPolicy
		orphan, force bool
		mailbox       string
		want          []string
	}{
		"by default":               {mailbox: "mb", want: []string{"The SyncTarget florin goes.", releases, "Its mailbox mb goes too, with all objects in it."}},
		"no mailbox":               {want: []string{releases, "It has no mailbox."}},
		"the policy is to delete":  {policy: edgev2alpha1.DeletionPolicyDelete, want: []string{deletes, "--orphan"}},
		"which --orphan overrides": {policy: edgev2alpha1.DeletionPolicyDelete, orphan: true, want: []string{releases}},
		"the policy is to orphan":  {policy: edgev2alpha1.DeletionPolicyOrphan, want: []string{releases}},
		"force leaves it as it is": {force: true, want: []string{keepsMarks}},
		"force, whatever is to be": {policy: edgev2alpha1.DeletionPolicyDelete, force: true, want: []string{keepsMarks}},
	} {
		syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}}
		syncTarget.Spec.DeletionPolicy = test.policy
		syncTarget.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: test.mailbox}
		got := (&unregisterOptions{orphan: test.orphan, force: test.force}).describeEffect(syncTarget)
		for _, part := range test.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is missing in %q", name, part, got)
			}
		}
	}
}
