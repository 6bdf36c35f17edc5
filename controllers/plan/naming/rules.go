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

package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// nameRules validate a name.
type nameRules struct {
	maxLength int
	validate  func(string) []string
}

var (
	labelRules     = nameRules{content.DNS1123LabelMaxLength, content.IsDNS1123Label}
	subdomainRules = nameRules{content.DNS1123SubdomainMaxLength, content.IsDNS1123Subdomain}
	// pathSegmentRules hold for every name, because it becomes part of a URL.
	pathSegmentRules = nameRules{content.DNS1123SubdomainMaxLength, content.IsPathSegmentName}
)

// labelNamedKinds are kinds whose names are DNS labels.
var labelNamedKinds = sets.New(
	schema.GroupKind{Group: corev1.GroupName, Kind: "Namespace"},
	schema.GroupKind{Group: corev1.GroupName, Kind: "Service"},
)

// subdomainNamedGroups are the groups in which all kinds have DNS names. Kubernetes' other groups have kinds without that rule,
// such as roles. The rules of all other groups are known only to the API server that serves the group.
var subdomainNamedGroups = sets.New(
	admissionregistrationv1.GroupName, apiextensionsv1.GroupName, appsv1.GroupName, autoscalingv1.GroupName, batchv1.GroupName,
	coordinationv1.GroupName, corev1.GroupName, discoveryv1.GroupName, networkingv1.GroupName, nodev1.GroupName,
	policyv1.GroupName, schedulingv1.GroupName, storagev1.GroupName,
)

func rulesFor(kind schema.GroupKind) nameRules {
	switch {
	case labelNamedKinds.Has(kind):
		return labelRules
	case subdomainNamedGroups.Has(kind.Group):
		return subdomainRules
	default:
		return pathSegmentRules
	}
}

// apply returns the valid name for a text, or the reason why there is none.
func (r nameRules) apply(text string) (name, message string) {
	switch {
	case text == "":
		return text, "a name cannot be empty"
	case !utf8.ValidString(text):
		return strings.ToValidUTF8(shorten(text, r.maxLength), ""), "a name must be valid UTF-8"
	default:
		name = shorten(text, r.maxLength)
		return name, strings.Join(r.validate(name), "; ")
	}
}

// hashLength is the number of hexadecimal digits that distinguish shortened names.
const hashLength = 20

// shorten truncates a text that exceeds the limit and adds a hash of the whole, so that different names stay different.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	start := text[:limit-hashLength-1]
	// Do not split a character, and do not leave a dot before the hyphen: it would end a DNS label.
	start = strings.TrimRight(strings.ToValidUTF8(start, ""), "-.")
	sum := sha256.Sum256([]byte(text))
	return start + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
