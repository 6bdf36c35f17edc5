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

package discovery_test

import (
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// resourceClient reads and creates objects of one resource in one namespace.
type resourceClient struct {
	dynamic.ResourceInterface
	t *testing.T
}

func (c *resourceClient) create(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.Create(c.t.Context(), object, metav1.CreateOptions{})
}

func (c *resourceClient) get(name string) (*unstructured.Unstructured, error) {
	return c.Get(c.t.Context(), name, metav1.GetOptions{})
}

// object returns an object with a spec in YAML.
func object(t *testing.T, apiVersion, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	content, err := yaml.YAMLToJSONStrict([]byte("spec: " + spec))
	if err != nil {
		t.Fatal(err)
	}
	// This decoder decodes whole numbers as int64.
	if err := utiljson.Unmarshal(content, &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	return object
}

func newClock(t *testing.T, version, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, "definitions.example.com/"+version, "Clock", name, spec)
}

// kcp serves a CRD with several versions in those that the cluster serves, with the rules, defaults and columns of the
// cluster.
func TestDefinitionsWithSeveralVersionsInKCP(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	crd := installClockCRD(t)
	apis := publish(t, "clocks", []definition{{crd: crd}}, nil)
	in := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: ownGroup, Version: version, Resource: "clocks"}
	}
	clocks := func(version string) *resourceClient {
		return &resourceClient{apis.client.Resource(in(version)).Namespace("default"), t}
	}

	created, err := clocks("v1").create(newClock(t, "v1", "one", `{port: 80, hands: 4, parts: [{name: a, size: null}], closed: {dropped: 1}, pod: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {any: 1}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Object["spec"]).To(Equal(map[string]any{
		"time": "12:00", "zone": "UTC", "port": int64(80), "hands": int64(4), "closed": map[string]any{},
		"parts": []any{map[string]any{"name": "a", "size": nil}},
		"pod":   map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"any": int64(1)}},
	}))
	for name, spec := range map[string]string{
		"a rule":         `{time: "12:00", zone: "12:00", hands: 4, port: 1}`,
		"an enum":        `{time: "13:00", hands: 4, port: 1}`,
		"a minimum":      `{hands: 1}`,
		"a junctor":      `{hands: 2, port: 1}`,
		"a key":          `{hands: 4, port: 1, parts: [{size: 1}]}`,
		"its only field": `null`,
	} {
		_, err := clocks("v1").create(newClock(t, "v1", "bad", spec))
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", name, err)
	}

	beta, err := clocks("v1beta1").get("one")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(beta.GetAPIVersion()).To(Equal("definitions.example.com/v1beta1"))
	g.Expect(beta.Object["spec"]).To(Equal(map[string]any{"time": "12:00"}))
	_, err = clocks("v1beta1").create(newClock(t, "v1beta1", "two", `{time: "24:00", old: "yes"}`))
	g.Expect(err).NotTo(HaveOccurred())
	two, err := clocks("v1beta1").get("two")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two.Object["spec"]).To(Equal(map[string]any{"time": "24:00"}), "objects are stored as v1, which does not know the field old")
	projected, err := schemas.Project(t.Context(), crd, "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projected.Annotations[schemas.NotesAnnotation]).To(ContainSubstring("v1beta1 .spec.old: it is lost"))

	_, err = apis.client.Resource(in("v1alpha1")).Namespace("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(HaveOccurred(), "v1alpha1 is not served")
}

// A CRD can become an API of the core group.
func TestDefinitionsInTheCoreGroupInKCP(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	apis := publish(t, "core", []definition{{
		crd:        installClockCRD(t),
		version:    "v1",
		projection: &synchubv1alpha1.Projection{Group: new(""), Kind: "Watch", Plural: "timepieces", ShortNames: []string{"tp"}},
	}}, nil)
	watches := &resourceClient{apis.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "timepieces"}).Namespace("default"), t}
	_, err := watches.create(object(t, "v1", "Watch", "one", `{port: http, hands: 4}`))
	g.Expect(err).NotTo(HaveOccurred())
	one, err := watches.get("one")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one.Object["spec"]).To(Equal(map[string]any{"time": "12:00", "zone": "UTC", "port": "http", "hands": int64(4)}))
}

// kcp serves the scale subresource.
func TestScaleInKCP(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	crd, err := read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"})
	g.Expect(err).NotTo(HaveOccurred())
	apis := publish(t, "scale", []definition{{crd: crd}}, nil)
	deployments := &resourceClient{apis.client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default"), t}
	_, err = deployments.create(object(t, "apps/v1", "Deployment", "one", `{replicas: 2, selector: {matchLabels: {a: b}}}`))
	g.Expect(err).NotTo(HaveOccurred())

	scale := &autoscalingv1.Scale{}
	found, err := deployments.Get(t.Context(), "one", metav1.GetOptions{}, "scale")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, scale)).To(Succeed())
	g.Expect(scale.Spec.Replicas).To(Equal(int32(2)))

	found.Object["spec"] = map[string]any{"replicas": int64(5)}
	_, err = deployments.Update(t.Context(), found, metav1.UpdateOptions{}, "scale")
	g.Expect(err).NotTo(HaveOccurred())
	one, err := deployments.get("one")
	g.Expect(err).NotTo(HaveOccurred())
	replicas, _, err := unstructured.NestedInt64(one.Object, "spec", "replicas")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(replicas).To(Equal(int64(5)))
}

// An API that kcp serves through an export can be read from kcp like from a cluster, and published again.
func TestReadFromKCP(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	crd := installClockCRD(t)
	apis := publish(t, "upstream", []definition{{crd: crd}}, nil)
	var again *apiextensionsv1.CustomResourceDefinition
	suite.Eventually(t, func(g Gomega) {
		found, err := read(t, apis.config, synchubv1alpha1.ResourceDescriptor{Group: ownGroup, Resource: "clocks", Version: "v1"})
		g.Expect(err).NotTo(HaveOccurred())
		again = found
	})
	g.Expect(jsonOf(t, withoutMeta(again.Spec.Versions[0]))).To(MatchJSON(jsonOf(t, withoutMeta(crd.Spec.Versions[2]))))
	g.Expect(again.Spec.Names).To(Equal(crd.Spec.Names))
}
