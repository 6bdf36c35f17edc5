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

package tenancy

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestIdentities(t *testing.T) {
	configMaps, hash := schema.GroupResource{Resource: "configmaps"}, WorkspaceHash("2abc")
	perWorkspace := func(identity edgev2alpha1.TenantIdentity, mailbox edgev2alpha1.MailboxIdentity) *edgev2alpha1.Tenancy {
		return &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace, Identity: identity, MailboxIdentity: mailbox}
	}
	const prefix = "system:serviceaccount:synchub-tenants:"
	for name, test := range map[string]struct {
		tenancy *edgev2alpha1.Tenancy
		// placed and unplaced are the users for an object that a workspace placed, and for one that no placement made.
		placed, unplaced string
	}{
		"no tenancy":                     {nil, "", ""},
		"the hub":                        {perWorkspace(edgev2alpha1.TenantIdentityHub, ""), "", ""},
		"shared namespaces":              {&edgev2alpha1.Tenancy{Identity: edgev2alpha1.TenantIdentityWorkspace}, "", ""},
		"workspaces":                     {perWorkspace(edgev2alpha1.TenantIdentityWorkspace, edgev2alpha1.MailboxIdentityHub), prefix + hash, ""},
		"workspaces and the mailbox":     {perWorkspace(edgev2alpha1.TenantIdentityWorkspace, edgev2alpha1.MailboxIdentityMailbox), prefix + hash, prefix + "mailbox"},
		"the mailbox without workspaces": {perWorkspace(edgev2alpha1.TenantIdentityHub, edgev2alpha1.MailboxIdentityMailbox), "", ""},
	} {
		identities := IdentitiesOf(test.tenancy)
		if got := identities.User(configMaps, "2abc"); got != test.placed {
			t.Errorf("%s: want %q, got %q", name, test.placed, got)
		}
		if got := identities.User(configMaps, ""); got != test.unplaced {
			t.Errorf("%s, without a placement: want %q, got %q", name, test.unplaced, got)
		}
		if got := identities.User(schema.GroupResource{Resource: "namespaces"}, "2abc"); got != "" {
			t.Errorf("%s: a namespace is written as %q", name, got)
		}
	}
	if len(MailboxAccount) >= len(hash) {
		t.Error("a workspace can have the mailbox's ServiceAccount")
	}
}
