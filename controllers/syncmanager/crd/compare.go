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

package crd

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// missingVersions returns the versions of observed that desired lacks and the hub must not remove: served versions, stored versions,
// and versions newer than all of desired. The result is sorted, without duplicates.
func missingVersions(observed, desired *apiextensionsv1.CustomResourceDefinition) []string {
	var known []string
	for _, v := range desired.Spec.Versions {
		known = append(known, v.Name)
	}
	newest := newestVersion(known)
	missing := map[string]struct{}{}
	for _, v := range observed.Spec.Versions {
		if v.Served || v.Storage || version.CompareKubeAwareVersionStrings(v.Name, newest) > 0 {
			missing[v.Name] = struct{}{}
		}
	}
	for _, stored := range observed.Status.StoredVersions {
		missing[stored] = struct{}{}
	}
	for _, name := range known {
		delete(missing, name)
	}
	return slices.SortedFunc(maps.Keys(missing), version.CompareKubeAwareVersionStrings)
}

// newestVersion returns the version that Kubernetes prefers, empty if there are no versions.
func newestVersion(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
}

// isUpToDate reports whether observed equals desired in spec and in the hub's own labels and annotations. It ignores all other
// labels and annotations.
func isUpToDate(desired, observed *apiextensionsv1.CustomResourceDefinition) bool {
	ours, err := canonicalContent(desired)
	if err != nil {
		return false
	}
	theirs, err := canonicalContent(observed)
	return err == nil && bytes.Equal(ours, theirs)
}

// canonicalContent returns the parts of a CRD that the hub manages. Equal contents are equal byte by byte.
func canonicalContent(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	spec, err := canonicalSpec(&crd.Spec)
	if err != nil {
		return nil, err
	}
	marks := []string{crd.Labels[ownership.InstalledByLabel], crd.Annotations[ownership.MarkAnnotation]}
	if apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		marks = append(marks, crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation])
	}
	head, err := json.Marshal(marks)
	return append(head, spec...), err
}

// fingerprint is the hash of a canonical content.
type fingerprint [sha256.Size]byte

func fingerprintOf(crd *apiextensionsv1.CustomResourceDefinition) fingerprint {
	text, err := canonicalContent(crd)
	if err != nil {
		return fingerprint{}
	}
	return sha256.Sum256(text)
}

// canonicalSpec returns the spec as canonical JSON. Raw values in it, such as defaults, may have been written with their keys in any
// order, and with numbers in several notations.
func canonicalSpec(spec *apiextensionsv1.CustomResourceDefinitionSpec) ([]byte, error) {
	defaulted := *spec
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted)
	text, err := json.Marshal(&defaulted)
	if err != nil {
		return nil, err
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
