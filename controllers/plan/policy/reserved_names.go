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

package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kcpSystemNamespace is the namespace of a workspace where kcp keeps the keys of its APIExports. A user with such a key can serve
// the API like its owner, and kcp uses any key in this namespace.
const kcpSystemNamespace = "kcp-system"

// reservedNames are the objects that kcp creates in every workspace, or in every namespace of one.
var reservedNames = map[schema.GroupResource][]string{
	{Resource: "configmaps"}:      {"kube-root-ca.crt"},
	{Resource: "namespaces"}:      {corev1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, kcpSystemNamespace},
	{Resource: "serviceaccounts"}: {"default"},
}

// reservedRBAC are the names of RBAC objects that kcp creates. reservedRBACPrefixes are prefixes of names that kcp and the hub
// use. With such objects the hub grants users their rights in a mailbox (spec.mailboxAccess of a SyncTarget).
var (
	reservedRBAC         = []string{"admin", "cluster-admin", "edit", "view", "workspace-admin"}
	reservedRBACPrefixes = []string{"synchub:", "system:"}
)

// CheckReservedName returns a [*DeniedError] if kcp or the hub owns the object of this name in a mailbox, so that no object may
// be upsynced under the name.
func CheckReservedName(inMailbox schema.GroupResource, key types.NamespacedName) error {
	reserved := slices.Contains(reservedNames[inMailbox], key.Name) || key.Namespace == kcpSystemNamespace
	if inMailbox.Group == rbacv1.GroupName {
		reserved = slices.Contains(reservedRBAC, key.Name) ||
			slices.ContainsFunc(reservedRBACPrefixes, func(prefix string) bool { return strings.HasPrefix(key.Name, prefix) })
	}
	if !reserved {
		return nil
	}
	return &DeniedError{ReasonNameReserved, fmt.Sprintf("the mailbox keeps an object %s %s of its own: take it out of upsync, or let it come up under another name", inMailbox, strings.TrimPrefix(key.String(), "/"))}
}
