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

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// An object that was deleted and created again is another object. Its copy is replaced if the kind has an identity, or if the
// former object belonged to other users.
func TestCopyOfAFormerObject(t *testing.T) {
	const job, deployment, claim, namespace = "batch/v1 Job", "apps/v1 Deployment", "v1 PersistentVolumeClaim", "v1 Namespace"
	type identity = ownership.Identity
	placed := func(workspace string, object types.UID) identity {
		return identity{Workspace: workspace, Object: object}
	}
	type facts struct {
		kind     string
		was, is  identity
		sameUID  bool
		policy   ownership.Policy
		change   func(*SourceState, *TargetObject)
		verified bool
	}
	former := func(_ *SourceState, o *TargetObject) { o.FormerMailbox = true }
	rebound := func(s *SourceState, _ *TargetObject) { s.Rebound = true }
	retained := func(_ *SourceState, o *TargetObject) { o.Retain = true }
	terminating := func(_ *SourceState, o *TargetObject) { o.Terminating = true }
	restored := func(_ *SourceState, o *TargetObject) { o.Restored = true }
	for name, test := range map[string]struct {
		facts
		want string
	}{
		"a Job made again":                           {facts{kind: job}, "VerifyAbsence (Superseded)"},
		"a Job made again, verified":                 {facts{kind: job, verified: true}, "Delete (Superseded)"},
		"a Job made again that is going":             {facts{kind: job, verified: true, change: terminating}, "None (BeingDeleted)"},
		"a claim made again":                         {facts{kind: claim, verified: true}, "Delete (Superseded)"},
		"a Job that stays":                           {facts{kind: job, sameUID: true}, "None (InSync)"},
		"a Deployment made again":                    {facts{kind: deployment}, "Apply (Changed)"},
		"a Job that was to be left":                  {facts{kind: job, verified: true, policy: ownership.PolicyOrphan}, "Release (Superseded)"},
		"in a mailbox made again":                    {facts{kind: claim, verified: true, change: former}, "Apply (Changed)"},
		"in a mailbox bound again":                   {facts{kind: claim, verified: true, change: rebound}, "Apply (Changed)"},
		"placed, made again":                         {facts{kind: job, was: placed("a", "1"), is: placed("a", "2"), verified: true}, "Delete (Superseded)"},
		"placed, made again below the same copy":     {facts{kind: job, was: placed("a", "1"), is: placed("a", "2"), sameUID: true, verified: true}, "Delete (Superseded)"},
		"placed again":                               {facts{kind: claim, was: placed("a", "1"), is: placed("a", "1"), verified: true}, "Apply (Changed)"},
		"placed again in a mailbox made again":       {facts{kind: claim, was: placed("a", "1"), is: placed("a", "1"), change: former}, "Apply (Changed)"},
		"of an earlier release":                      {facts{kind: claim, is: placed("a", "1"), sameUID: true}, "None (InSync)"},
		"of an earlier release, mailbox made again":  {facts{kind: claim, is: placed("a", "1"), change: former}, "Apply (Changed)"},
		"another workspace's Deployment":             {facts{kind: deployment, was: placed("a", "1"), is: placed("b", "2"), verified: true}, "Delete (Superseded)"},
		"another workspace's, not verified":          {facts{kind: deployment, was: placed("a", "1"), is: placed("b", "2")}, "VerifyAbsence (Superseded)"},
		"another workspace's in a lost mailbox":      {facts{kind: claim, was: placed("a", "1"), is: placed("b", "2"), verified: true, change: former}, "Conflict (NameTaken)"},
		"another workspace's in a bound mailbox":     {facts{kind: claim, was: placed("a", "1"), is: placed("b", "2"), verified: true, change: rebound}, "Conflict (NameTaken)"},
		"another workspace's from a backup":          {facts{kind: claim, was: placed("a", "1"), is: placed("b", "2"), verified: true, change: restored}, "Conflict (NameTaken)"},
		"another workspace's orphan":                 {facts{kind: claim, was: placed("a", "1"), is: placed("b", "2"), verified: true, policy: ownership.PolicyOrphan}, "Release (Superseded)"},
		"another workspace's Namespace":              {facts{kind: namespace, was: placed("a", "1"), is: placed("b", "2"), verified: true, change: retained}, "Apply (Changed)"},
		"a user's own after a workspace's":           {facts{kind: deployment, was: placed("a", "1"), verified: true}, "Delete (Superseded)"},
		"a workspace's after a user's own":           {facts{kind: deployment, is: placed("a", "1"), verified: true}, "Delete (Superseded)"},
		"a user's own in place of a released object": {facts{kind: deployment, was: placed("a", "1"), sameUID: true}, "None (InSync)"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetGroupVersionKind(kindNamed(test.kind))
			mark := ownership.Mark{Source: ownership.Source{Resource: "things", Name: "x", UID: "new"}, Policy: ownership.PolicyDelete}
			source := SourceState{State: Selected, AbsenceVerified: test.verified, Desired: &transform.Desired{Object: object, Mark: mark, Identity: test.is}}
			observed := &TargetObject{UID: "copy", Mark: mark, HasOwnerLabel: true, Identity: test.was}
			if !test.sameUID {
				observed.Mark.Source.UID = "old"
			}
			if test.policy != "" {
				observed.Mark.Policy = test.policy
			}
			if test.change != nil {
				test.change(&source, observed)
			}
			got, err := DecideDown(source, observed, nil)
			if err != nil || got.String() != test.want {
				t.Errorf("want %s, got %s, %v", test.want, got, err)
			}
		})
	}
}

func TestCopyInMailboxOfAFormerObject(t *testing.T) {
	for name, test := range map[string]struct {
		kind   string
		change func(*MailboxObject)
		want   string
	}{
		"a Job":              {"batch/v1 Job", func(*MailboxObject) {}, "Delete (Superseded)"},
		"a Deployment":       {"apps/v1 Deployment", func(*MailboxObject) {}, "Update (Changed)"},
		"a Job that stays":   {"batch/v1 Job", func(o *MailboxObject) { o.Mark.Source.UID = "new" }, "None (InSync)"},
		"a Job to be left":   {"batch/v1 Job", func(o *MailboxObject) { o.Mark.Policy = ownership.PolicyOrphan }, "Update (Changed)"},
		"a Job that is kept": {"batch/v1 Job", func(o *MailboxObject) { o.Retain = true }, "Update (Changed)"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(kindNamed(test.kind))
		mark := ownership.Mark{Source: ownership.Source{Resource: "things", Name: "x", UID: "new"}, Policy: ownership.PolicyDelete}
		observed := &MailboxObject{Owned: true, Mark: mark}
		observed.Mark.Source.UID = "old"
		test.change(observed)
		got, err := DecideUp(SourceState{State: Selected, Desired: &transform.Desired{Object: object, Mark: mark}}, observed, nil)
		if err != nil || got.String() != test.want {
			t.Errorf("%s: want %s, got %s, %v", name, test.want, got, err)
		}
	}
}
