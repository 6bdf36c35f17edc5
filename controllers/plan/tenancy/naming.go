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
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

const (
	namespacePlaceholder = "{namespace}"
	hashPlaceholder      = "{hash}"
	defaultTemplate      = namespacePlaceholder + "-" + hashPlaceholder

	// workspaceHashLength and namespaceHashLength are numbers of characters of 5 bits each. The names of logical clusters are
	// chosen by kcp, so that nobody can search for two with the same hash.
	workspaceHashLength = 12
	namespaceHashLength = 10
)

// hashEncoding has characters that DNS labels allow.
var hashEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

func hashOf(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(hashEncoding.EncodeToString(sum[:]))[:length]
}

// WorkspaceHash returns the 12 characters that identify a workload workspace on clusters: in the names of its namespaces, in
// their label [edgev2alpha1.LabelWorkspace], and as the name of its ServiceAccount.
func WorkspaceHash(workspace logicalcluster.Name) string {
	return hashOf(workspace.String(), workspaceHashLength)
}

// Naming gives the namespaces of workload workspaces their names on a cluster. It is a template with {namespace} and {hash}; the
// empty one leaves the names as they are.
type Naming string

// NamingOf returns the naming of a cluster.
func NamingOf(tenancy *edgev2alpha1.Tenancy) Naming {
	switch {
	case tenancy == nil || tenancy.Namespaces != edgev2alpha1.NamespacesPerWorkspace:
		return ""
	case isTemplate(tenancy.NamespaceTemplate):
		return Naming(tenancy.NamespaceTemplate)
	default:
		return defaultTemplate
	}
}

// isTemplate reports whether a template gives different namespaces different names. The schema of SyncTargets refuses all other
// templates.
func isTemplate(template string) bool {
	return strings.Count(template, namespacePlaceholder) == 1 && strings.Count(template, hashPlaceholder) == 1
}

// IsShared reports whether all workspaces share the namespaces of the cluster.
func (n Naming) IsShared() bool { return n == "" }

// Namespace returns the name on the cluster of a namespace of a workload workspace. The empty namespace stays empty. Different
// namespaces, or workspaces, have different names, up to collisions of their hashes: all names of a template have the same
// number of characters beside the namespace, and a namespace is shortened to a length that no other namespace keeps.
func (n Naming) Namespace(workspace logicalcluster.Name, namespace string) string {
	if n.IsShared() || namespace == "" {
		return namespace
	}
	before, after, _ := strings.Cut(strings.Replace(string(n), hashPlaceholder, WorkspaceHash(workspace), 1), namespacePlaceholder)
	if limit := validation.DNS1123LabelMaxLength - len(before) - len(after); len(namespace) >= limit {
		namespace = namespace[:limit-namespaceHashLength-1] + "-" + hashOf(namespace, namespaceHashLength)
	}
	return before + namespace + after
}
