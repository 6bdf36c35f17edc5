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

package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

const (
	// ConfigMapKey is the key of the CRD in a ConfigMap that [PlanDefinition] returns.
	ConfigMapKey = "crd.json"
	// MaxConfigMapBytes is the maximum size of all values of a ConfigMap. API servers refuse larger ones.
	MaxConfigMapBytes = corev1.MaxSecretSize

	// ManagedByLabel has the value ManagerName on such a ConfigMap.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagerName    = "kubectl-synchub"

	configMapPrefix = "schema-"
)

// Options are the settings of [PlanDefinition].
type Options struct {
	// Namespace is the hub's namespace in the hosting cluster.
	Namespace string
	// InstallCRD sets spec.installCRD. Nil leaves the field of an existing PublishedResource as it is.
	InstallCRD *bool
}

// Definition is the plan for one CRD.
type Definition struct {
	Publication
	// ConfigMap holds the CRD. It is nil if the resource is published from another source and left as it is.
	ConfigMap *corev1.ConfigMap
	// SchemaName is the name of the APIResourceSchema that the hub makes of the CRD.
	SchemaName string
	// FullBytes is the size of the CRD with its descriptions, if it is too large for a ConfigMap. The ConfigMap has the CRD
	// without them then. Otherwise FullBytes is 0.
	FullBytes int
}

// PlanDefinition returns the plan that publishes the resource of a CRD, with the CRD in a ConfigMap as its schema. The error
// names the CRD if the hub would refuse it.
func PlanDefinition(ctx context.Context, object *unstructured.Unstructured, existing []synchubv1alpha1.PublishedResource, options Options) (Definition, error) {
	manifest, err := encode(object.Object)
	if err != nil {
		return Definition{}, fmt.Errorf("the CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	crd, err := publishedresource.ParseDefinition(manifest, object.GetName())
	if err != nil {
		return Definition{}, err
	}
	resource := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	from := synchubv1alpha1.SchemaFrom{ConfigMap: &synchubv1alpha1.ConfigMapSchema{Name: configMapPrefix + resource.String(), Key: ConfigMapKey}}
	planned := Definition{Publication: Publication{Resource: resource}}
	planned.Existing = publishedresource.FindOldest(existing, publishedresource.OnTarget, resource, crd.Spec.Names.Kind)
	if planned.HasOtherSchema(from) {
		return planned, nil
	}
	if err := planned.setDesired(crd.Spec.Names.Kind, from, existing, options.InstallCRD); err != nil {
		return Definition{}, err
	}
	if len(manifest) > MaxConfigMapBytes {
		planned.FullBytes = len(manifest)
		if manifest, err = encodeWithoutDescriptions(object, crd); err != nil {
			return Definition{}, err
		}
	}
	if planned.SchemaName, err = planned.checkSchema(ctx, manifest); err != nil {
		return Definition{}, fmt.Errorf("the hub cannot publish the CustomResourceDefinition %s: %w", crd.Name, err)
	}
	planned.ConfigMap = &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: options.Namespace, Name: from.ConfigMap.Name, Labels: map[string]string{ManagedByLabel: ManagerName}},
		Data:       map[string]string{ConfigMapKey: manifest},
	}
	return planned, nil
}

// setDesired sets the desired PublishedResource if there is none, or if the existing one must change.
func (d *Definition) setDesired(kind string, from synchubv1alpha1.SchemaFrom, existing []synchubv1alpha1.PublishedResource, install *bool) error {
	if d.Existing != nil {
		if install != nil && d.Existing.Spec.InstallCRD != *install {
			d.Desired = d.Existing.DeepCopy()
			d.Desired.Spec.InstallCRD = *install
		}
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(from.ConfigMap.Name); len(problems) > 0 {
		return fmt.Errorf("the CustomResourceDefinition of %s needs a ConfigMap %s, which is not the name of an object: %s", d.Resource, from.ConfigMap.Name, problems[0])
	}
	desired, err := desiredPublishedResource(d.Resource, kind, from)
	if err != nil {
		return err
	}
	for i := range existing {
		if existing[i].Name == desired.Name {
			return fmt.Errorf("the PublishedResource %s publishes another resource: publish %s under another name yourself", desired.Name, d.Resource)
		}
	}
	desired.Spec.InstallCRD = install != nil && *install
	d.Desired = desired
	return nil
}

// checkSchema returns the name of the APIResourceSchema that the hub makes of the manifest, or the error that the hub would
// report.
func (d *Definition) checkSchema(ctx context.Context, manifest string) (string, error) {
	stored, err := publishedresource.ParseDefinition(manifest, "the ConfigMap")
	if err != nil {
		return "", err
	}
	resource := d.Existing
	if resource == nil {
		resource = d.Desired
	}
	made, err := publishedresource.BuildSchema(ctx, &resource.Spec, stored)
	if err != nil {
		return "", err
	}
	return made.Name, nil
}

// IsOurs reports whether a ConfigMap was made from a plan.
func IsOurs(configMap *corev1.ConfigMap) bool { return configMap.Labels[ManagedByLabel] == ManagerName }

// encode returns the JSON of a CRD without its status and the metadata that a server sets.
func encode(object map[string]any) (string, error) {
	metadata := map[string]any{}
	for _, field := range []string{"name", "labels", "annotations"} {
		if value, ok, _ := unstructured.NestedFieldCopy(object, "metadata", field); ok && value != nil {
			metadata[field] = value
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return toJSON(map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata, "spec": object["spec"]})
}

func toJSON(content any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	// Escapes for HTML would take six bytes for one.
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(content)
	return string(bytes.TrimSpace(text.Bytes())), err
}

// encodeWithoutDescriptions returns the JSON of a CRD without descriptions. The hub also drops the descriptions
// from a schema of such a size. If the CRD is still too large, the error contains the size.
func encodeWithoutDescriptions(object *unstructured.Unstructured, crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	small := crd.DeepCopy()
	structural.RemoveDescriptions(small)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&small.Spec)
	if err != nil {
		return "", err
	}
	reduced := map[string]any{"apiVersion": object.Object["apiVersion"], "kind": object.Object["kind"], "metadata": object.Object["metadata"], "spec": spec}
	manifest, err := encode(reduced)
	if err == nil && len(manifest) > MaxConfigMapBytes {
		err = fmt.Errorf("the CustomResourceDefinition %s takes %d bytes as JSON without descriptions, and a ConfigMap holds %d: apply it to the hosting cluster with kubectl apply --server-side, and create a PublishedResource without spec.api.schemaFrom, for which the hub reads it there",
			crd.Name, len(manifest), MaxConfigMapBytes)
	}
	return manifest, err
}
