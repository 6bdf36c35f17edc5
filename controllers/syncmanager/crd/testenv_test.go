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

package crd_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

func TestMain(m *testing.M) { suite.Main(m) }

// createCRD applies a CRD with a client that is not the hub's.
func createCRD(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	typed := apiextensionsv1.CustomResourceDefinition{Spec: crd.Spec}
	typed.APIVersion, typed.Kind = definitions.GroupVersion().String(), "CustomResourceDefinition"
	typed.Name, typed.Labels, typed.Annotations = crd.Name, crd.Labels, crd.Annotations
	manifest, err := yaml.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	suite.Apply(t, suite.Target(t).Config, string(manifest))
}

// getCRD reads a CRD with a client that is not the hub's.
func getCRD(ctx context.Context, g Gomega, t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	object, err := framework.Get(ctx, suite.Target(t).Config, definitions, "", name)
	g.Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd)).To(Succeed())
	return crd
}

func deleteCRD(t *testing.T, name string) {
	t.Helper()
	client := administrator(t).Resource(definitions)
	doomed, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deleteCRDWithObjects(t, name)
	// The CRD has no custom resources, and the API server's own cleanup takes up to a minute. The UID protects a later CRD of the same name.
	noFinalizer := fmt.Appendf(nil, `{"metadata":{"uid":%q,"finalizers":null}}`, doomed.GetUID())
	_, err = client.Patch(t.Context(), name, types.MergePatchType, noFinalizer, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
}

// deleteCRDWithObjects deletes a CRD that has custom resources. It terminates until they are gone.
func deleteCRDWithObjects(t *testing.T, name string) {
	t.Helper()
	if err := framework.Delete(t.Context(), suite.Target(t).Config, definitions, "", name); err != nil {
		t.Fatal(err)
	}
}

// administrator returns a client that is not the hub's.
func administrator(t *testing.T) dynamic.Interface {
	t.Helper()
	return suite.Dynamic(t, suite.Target(t).Config)
}

// made counts the CRDs that unique has returned.
var made atomic.Int64

// unique returns a CRD that no other test, and no earlier run, has used.
func unique(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	number := made.Add(1)
	return newCRD(fmt.Sprintf("widgets%d", number), fmt.Sprintf("Widget%d", number), versions...)
}
