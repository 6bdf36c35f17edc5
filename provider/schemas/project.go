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

package schemas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// The fields of a PublishedResource that errors name.
const (
	fieldVersion   = "spec.resource.version"
	fieldGroup     = "spec.projection.group"
	fieldToVersion = "spec.projection.version"
	fieldPlural    = "spec.projection.plural"
)

// coreVersion is the only version of the core group.
const coreVersion = "v1"

// dotlessGroups are the groups without a dot in which kcp allows APIs.
var dotlessGroups = []string{"", "apps", "autoscaling", "batch", "extensions", "policy"}

// PreferredVersion returns the version that a server returns to clients that request none, and that the hub syncs unless another
// version is named. Of the served versions it is the highest, stable before beta before alpha. It is empty if the CRD serves no
// version.
func PreferredVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	names := servedVersions(crd)
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, version.CompareKubeAwareVersionStrings)
}

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) (names []string) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Served {
			names = append(names, crd.Spec.Versions[i].Name)
		}
	}
	return names
}

// Project returns the CRD as mailboxes have it: with all served versions, or only the given one if it is not empty,
// under the names of the projection, and with schemas that kcp accepts. The annotation NotesAnnotation lists the
// parts of the schemas that Project removed. Errors start with the field of the PublishedResource that can solve
// them.
func Project(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string, projection *synchubv1alpha1.Projection) (*apiextensionsv1.CustomResourceDefinition, error) {
	if err := structural.CheckDefinition(crd); err != nil {
		return nil, fmt.Errorf("spec.resource: the definition of %s is too large: %w", crd.Name, err)
	}
	projected := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Annotations: annotationsOf(crd)},
		Spec:       *crd.Spec.DeepCopy(),
	}
	projected.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	if err := selectVersions(projected, crd, version); err != nil {
		return nil, err
	}
	if err := applyProjection(projected, projection); err != nil {
		return nil, err
	}
	if err := sanitizeSchemas(ctx, projected); err != nil {
		return nil, err
	}
	chooseStorageVersion(projected)
	return projected, nil
}

// selectVersions removes the versions that mailboxes do not get.
func selectVersions(projected, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	projected.Spec.Versions = slices.DeleteFunc(projected.Spec.Versions, func(candidate apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !candidate.Served || version != "" && candidate.Name != version
	})
	switch {
	case len(projected.Spec.Versions) > 0:
		return nil
	case len(servedVersions(crd)) == 0:
		return fmt.Errorf("spec.resource: the definition of %s serves no version", crd.Name)
	default:
		return fmt.Errorf("%s: the definition of %s does not serve %s; it serves %s", fieldVersion, crd.Name, version, strings.Join(servedVersions(crd), ", "))
	}
}

func applyProjection(projected *apiextensionsv1.CustomResourceDefinition, projection *synchubv1alpha1.Projection) error {
	if projection == nil {
		projection = &synchubv1alpha1.Projection{}
	}
	if projection.Group != nil {
		projected.Spec.Group = *projection.Group
	}
	if err := requireGroup(projected.Spec.Group, projection.Group != nil); err != nil {
		return err
	}
	if projection.Version != "" {
		if len(projected.Spec.Versions) > 1 {
			return fmt.Errorf("%s: it needs %s, because %s is served in the versions %s", fieldToVersion, fieldVersion, projected.Spec.Names.Plural, strings.Join(servedVersions(projected), ", "))
		}
		projected.Spec.Versions[0].Name = projection.Version
	}
	if names := servedVersions(projected); projected.Spec.Group == "" && !slices.Equal(names, []string{coreVersion}) {
		return fmt.Errorf("%s: kcp serves the core group in %s alone, not in %s", fieldToVersion, coreVersion, strings.Join(names, ", "))
	}
	names := &projected.Spec.Names
	if projection.Kind != "" && projection.Kind != names.Kind {
		names.Kind = projection.Kind
		names.Singular, names.ListKind = strings.ToLower(names.Kind), names.Kind+"List"
	}
	names.Plural = cmp.Or(projection.Plural, names.Plural)
	names.Singular = cmp.Or(names.Singular, strings.ToLower(names.Kind))
	names.ListKind = cmp.Or(names.ListKind, names.Kind+"List")
	if names.Plural == "namespaces" {
		return fmt.Errorf("%s: kcp takes the part of a URL that follows %q for a namespace: give mailboxes another plural", fieldPlural, names.Plural)
	}
	if len(projection.ShortNames) > 0 {
		names.ShortNames = slices.Clone(projection.ShortNames)
	}
	projected.Name = names.Plural + "." + cmp.Or(projected.Spec.Group, coreGroup)
	return nil
}

// requireGroup returns an error for a group in which kcp allows no schemas.
func requireGroup(group string, projected bool) error {
	if strings.Contains(group, ".") && len(validation.IsDNS1123Subdomain(group)) == 0 || slices.Contains(dotlessGroups, group) {
		return nil
	}
	if projected {
		return fmt.Errorf("%s: kcp has no APIs in the group %q: use a domain with at least one dot", fieldGroup, group)
	}
	return fmt.Errorf("%s: kcp has no APIs in the group %q: give mailboxes a domain with at least one dot", fieldGroup, group)
}

// chooseStorageVersion makes the preferred version the storage version, and records a note for each field that the other
// versions lose.
func chooseStorageVersion(projected *apiextensionsv1.CustomResourceDefinition) {
	preferred := PreferredVersion(projected)
	storage := slices.IndexFunc(projected.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return version.Name == preferred
	})
	for i := range projected.Spec.Versions {
		version := &projected.Spec.Versions[i]
		version.Storage = i == storage
		if i != storage {
			AddNotes(projected, version.Name, structural.UnstoredFields(version, &projected.Spec.Versions[storage]))
		}
	}
}

// sanitizeSchemas changes the schemas of all versions such that kcp accepts them.
func sanitizeSchemas(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	var errs []error
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if crd.Spec.PreserveUnknownFields {
			structural.PreserveUnknownFields(version)
		}
		notes, err := structural.Sanitize(ctx, version)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.resource: %w", err))
			continue
		}
		AddNotes(crd, version.Name, notes)
	}
	crd.Spec.PreserveUnknownFields = false
	if structural.DropDescriptions(crd) {
		AddNotes(crd, "", []structural.Note{{Reason: "descriptions are left out: with them the schema is too large to be stored"}})
	}
	return errors.Join(errs...)
}
