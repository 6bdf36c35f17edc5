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

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/staleobjects"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// replacedCluster is a cluster that a SyncTarget stood for, with its objects and objects of other owners.
type replacedCluster struct {
	*testFleet
	former    *edgev2alpha1.SyncTarget
	clusterID string
	// credentials is the Secret with the SyncTarget's kubeconfig.
	credentials *corev1.Secret
	owner       ownership.Owner
	// foreign are objects that must never change.
	foreign []client.Object
}

const staleNamespace = "strays"

func TestStaleObjects(t *testing.T) {
	s := newReplacedCluster(t)
	t.Run("refused", s.refuses)
	t.Run("only its own are listed", s.lists)
	t.Run("nothing changes unasked", s.asks)
	t.Run("the present cluster is refused", s.refusesPresent)
	t.Run("delete", s.deletes)
	t.Run("release", s.releases)
	t.Run("changed at the same time", s.looksAgain)
	t.Run("by UID", s.findsByUID)
	s.foreignAreUntouched(t)
}

func newReplacedCluster(t *testing.T) *replacedCluster {
	t.Helper()
	s := &replacedCluster{testFleet: newFleet(t)}
	var system corev1.Namespace
	if err := s.admin.Get(t.Context(), types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		t.Fatal(err)
	}
	s.clusterID = string(system.UID)
	s.former = &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "swapped"}}
	s.make(t, s.former)
	s.standsFor(t, "elsewhere")
	s.credentials = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: edgev2alpha1.DefaultCredentialNamespace, Name: "swapped-kubeconfig"}}
	s.make(t, s.credentials)
	s.leadsTo(t, elsewhere(t))
	s.owner = ownership.Owner{Hub: "a-hub", SyncTarget: s.former.UID, Sealer: ownership.NewSealer([]byte("a key"))}

	s.make(t, s.marked(s.owner, s.object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: strays}}"), ownership.PolicyDelete))
	s.make(t, s.marked(s.owner, s.object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: strays.example.com}, spec: {
		group: example.com, scope: Namespaced, names: {plural: strays, kind: Stray},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`), ownership.PolicyDelete))
	s.make(t, s.marked(s.owner, s.configMap("mine"), ownership.PolicyDelete))
	s.make(t, s.marked(s.owner, s.configMap("stays"), ownership.PolicyOrphan))

	another := s.owner
	another.SyncTarget = "another"
	copied := s.configMap("copied")
	copied.Object["metadata"].(map[string]any)["labels"] = map[string]any{ownership.OwnerLabel: s.owner.LabelValue()}
	copied.SetAnnotations(map[string]string{ownership.MarkAnnotation: s.owner.Seal(s.mark(s.owner, s.configMap("mine"), ownership.PolicyDelete))})
	unlabelled := s.marked(s.owner, s.configMap("unlabelled"), ownership.PolicyDelete)
	unlabelled.SetLabels(nil)
	s.foreign = []client.Object{s.configMap("plain"), s.marked(another, s.configMap("another"), ownership.PolicyDelete), copied, unlabelled}
	for _, other := range s.foreign {
		s.make(t, other)
	}
	return s
}

// standsFor sets in the status which cluster the SyncTarget stands for.
func (s *replacedCluster) standsFor(t *testing.T, clusterID string) {
	t.Helper()
	s.former.Status.ClusterID = clusterID
	s.former.Status.FormerClusters = []edgev2alpha1.FormerCluster{{ClusterID: s.clusterID, Until: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}}
	if err := s.admin.Status().Update(t.Context(), s.former); err != nil {
		t.Fatal(err)
	}
}

// leadsTo replaces the SyncTarget's kubeconfig.
func (s *replacedCluster) leadsTo(t *testing.T, kubeconfig []byte) {
	t.Helper()
	s.credentials.Data = map[string][]byte{edgev2alpha1.DefaultCredentialKey: kubeconfig}
	if err := s.admin.Update(t.Context(), s.credentials); err != nil {
		t.Fatal(err)
	}
}

// elsewhere returns the kubeconfig of another cluster, a double that serves only its ID.
func elsewhere(t *testing.T) []byte {
	t.Helper()
	server := suite.ServeTLS(t, http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/api/v1/namespaces/kube-system" {
			http.NotFound(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		fmt.Fprint(response, `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "kube-system", "uid": "elsewhere"}}`)
	}))
	return suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), "none")
}

func (s *replacedCluster) object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	return fixtures.Object(t, strings.ReplaceAll(manifest, "\t", " "))
}

func (s *replacedCluster) configMap(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetNamespace(staleNamespace)
	object.SetName(name)
	return object
}

func (s *replacedCluster) mark(owner ownership.Owner, object *unstructured.Unstructured, policy ownership.Policy) ownership.Mark {
	kind := object.GroupVersionKind()
	return ownership.Mark{
		Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: "a", Policy: policy,
		Source: ownership.Source{Group: kind.Group, Resource: "any", Namespace: object.GetNamespace(), Name: object.GetName(), UID: "source"},
		Self:   ownership.Self{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()},
	}
}

// marked marks an object as a hub does.
func (s *replacedCluster) marked(owner ownership.Owner, object *unstructured.Unstructured, policy ownership.Policy) *unstructured.Unstructured {
	object.SetLabels(map[string]string{ownership.OwnerLabel: owner.LabelValue()})
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(s.mark(owner, object, policy))})
	return object
}

// now returns the current object, or nil if it is gone.
func (s *replacedCluster) now(t *testing.T, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	if kind == "CustomResourceDefinition" {
		object.SetAPIVersion("apiextensions.k8s.io/v1")
	}
	err := s.admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// own returns the current objects of the SyncTarget.
func (s *replacedCluster) own(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{
		s.now(t, "ConfigMap", staleNamespace, "mine"), s.now(t, "ConfigMap", staleNamespace, "stays"),
		s.now(t, "Namespace", "", staleNamespace), s.now(t, "CustomResourceDefinition", "", "strays.example.com"),
	}
}

// versions returns the resourceVersions of the SyncTarget's objects.
func (s *replacedCluster) versions(t *testing.T) (versions []string) {
	t.Helper()
	for _, object := range s.own(t) {
		versions = append(versions, object.GetResourceVersion())
	}
	return versions
}

func (s *replacedCluster) isReleased(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if object == nil || object.GetDeletionTimestamp() != nil {
		t.Fatal("it is gone, or going")
	}
	if object.GetLabels()[ownership.OwnerLabel] != "" || object.GetAnnotations()[ownership.MarkAnnotation] != "" {
		t.Errorf("%s %s still has its marks", object.GetKind(), object.GetName())
	}
}

func (s *replacedCluster) foreignAreUntouched(t *testing.T) {
	t.Helper()
	for _, other := range s.foreign {
		if now := s.now(t, "ConfigMap", staleNamespace, other.GetName()); now == nil || now.GetResourceVersion() != other.GetResourceVersion() {
			t.Errorf("%s was touched", other.GetName())
		}
	}
}

// with returns the command line.
func (s *replacedCluster) with(more ...string) []string {
	return append([]string{"stale-objects", "swapped", "--target-kubeconfig", s.Kubeconfig}, more...)
}

func (s *replacedCluster) refuses(t *testing.T) {
	fail(t, "give the name of one SyncTarget", "stale-objects", "--target-kubeconfig", s.Kubeconfig)
	fail(t, "unexpected argument", s.with("--uid", "a")...)
	fail(t, "--target-kubeconfig is needed", "stale-objects", "swapped")
	fail(t, "[delete release]", s.with("--delete", "--release", "--yes")...)
	fail(t, "give its UID with --uid", "stale-objects", "nobody", "--target-kubeconfig", s.Kubeconfig)
	fail(t, "--resources", s.with("--resources", "nonsense")...)
	fail(t, "is none of none, client and server", s.with("--dry-run=maybe")...)
}

// rowsIn returns the lines of a table below its header, with cells separated by one space.
func rowsIn(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if row := strings.Join(strings.Fields(line), " "); row != "" && !strings.HasPrefix(row, "RESOURCE ") {
			rows = append(rows, row)
		}
	}
	return rows
}

func (s *replacedCluster) lists(t *testing.T) {
	want := []string{
		"configmaps strays mine deleted", "configmaps strays stays released Orphaned",
		"customresourcedefinitions.apiextensions.k8s.io strays.example.com released NotCascading", "namespaces strays released NotCascading",
	}
	got := succeed(t, s.with()...)
	if rows := rowsIn(got.out); !slices.Equal(rows, want) {
		t.Errorf("got\n%s", got.out)
	}
	if !strings.Contains(got.errs, "stands for the cluster elsewhere; this one is "+s.clusterID+", which it stood for until 2026-11-21 12:00 UTC.") {
		t.Errorf("it prints\n%s", got.errs)
	}
	if got := succeed(t, s.with("--resources", "cm")...); !slices.Equal(rowsIn(got.out), want[:2]) {
		t.Errorf("of ConfigMaps it lists\n%s", got.out)
	}
	if got := succeed(t, s.with("--resources", "configmaps", "-o", "name")...); got.out != "configmap/mine\nconfigmap/stays\n" {
		t.Errorf("by name it lists\n%s", got.out)
	}
}

func (s *replacedCluster) asks(t *testing.T) {
	before := s.versions(t)
	fail(t, "Of these objects 1 would be deleted and 3 released. Their marks are not verified.\nerror: nothing was changed: give --yes", s.with("--delete")...)
	for _, dryRun := range []string{"client", "server"} {
		got := succeed(t, s.with("--delete", "--dry-run="+dryRun)...)
		if !strings.Contains(got.out, "configmap/mine deleted ("+dryRun+" dry run)\nconfigmap/stays released ("+dryRun+" dry run)\n") {
			t.Errorf("it prints\n%s", got.out)
		}
		succeed(t, s.with("--release", "--yes", "--dry-run="+dryRun)...)
	}
	if after := s.versions(t); !slices.Equal(after, before) {
		t.Errorf("versions were %v and are %v", before, after)
	}
}

func (s *replacedCluster) refusesPresent(t *testing.T) {
	before := s.versions(t)
	for clusterID, message := range map[string]string{s.clusterID: "kubectl synchub drain swapped", "": "has not reported the cluster that"} {
		s.standsFor(t, clusterID)
		for _, action := range []string{"", "--delete", "--release"} {
			fail(t, message, append(s.with("--yes"), strings.Fields(action)...)...)
			fail(t, message, append([]string{"stale-objects", "--uid", string(s.former.UID), "--target-kubeconfig", s.Kubeconfig, "--yes"}, strings.Fields(action)...)...)
		}
	}
	s.standsFor(t, "elsewhere")
	// Everybody who can write the status can have written that.
	there := s.credentials.Data[edgev2alpha1.DefaultCredentialKey]
	here, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for kubeconfig, message := range map[string]string{
		string(here): "leads to this cluster (" + s.clusterID + ")", "nonsense": "cannot be asked whether it is this one",
	} {
		s.leadsTo(t, []byte(kubeconfig))
		fail(t, message, s.with("--yes", "--delete")...)
		fail(t, message, s.with("--yes", "--release")...)
		if got := succeed(t, s.with()...); !strings.Contains(got.errs, message) {
			t.Errorf("the list does not warn:\n%s", got.errs)
		}
	}
	s.leadsTo(t, there)
	if after := s.versions(t); !slices.Equal(after, before) {
		t.Errorf("versions were %v and are %v", before, after)
	}
}

func (s *replacedCluster) deletes(t *testing.T) {
	got := succeed(t, s.with("--delete", "--yes")...)
	own := s.own(t)
	if own[0] != nil {
		t.Error("an object is left")
	}
	for _, kept := range own[1:] {
		s.isReleased(t, kept)
	}
	for _, line := range []string{"configmap/mine deleted\n", "configmap/stays released\n", "namespace/strays released\n"} {
		if !strings.Contains(got.out, line) {
			t.Errorf("it prints\n%s", got.out)
		}
	}
	if got := succeed(t, s.with("--delete", "--yes")...); !strings.Contains(got.errs, "There is nothing to do.") {
		t.Errorf("the second time it prints\n%s", got.errs)
	}
	s.foreignAreUntouched(t)
}

func (s *replacedCluster) releases(t *testing.T) {
	made := s.marked(s.owner, s.configMap("mine"), ownership.PolicyDelete)
	made.Object["data"] = map[string]any{"a": "b"}
	s.make(t, made)
	succeed(t, s.with("--release", "--yes")...)
	now := s.now(t, "ConfigMap", staleNamespace, "mine")
	s.isReleased(t, now)
	if value, _, _ := unstructured.NestedString(now.Object, "data", "a"); value != "b" || now.GetUID() != made.GetUID() {
		t.Errorf("more than the marks was changed: %v", now.Object)
	}
	s.foreignAreUntouched(t)
}

// looksAgain tests objects that change after the list.
func (s *replacedCluster) looksAgain(t *testing.T) {
	cluster, err := cli.NewTargetReader(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) staleobjects.StaleObject {
		found, err := staleobjects.Find(t.Context(), cluster, s.former.UID, cleanup.ModeDelete, []string{"configmaps"})
		if err != nil {
			t.Fatal(err)
		}
		index := slices.IndexFunc(found.Objects, func(one staleobjects.StaleObject) bool { return one.Name == name })
		if index < 0 {
			t.Fatalf("%s is not listed", name)
		}
		return found.Objects[index]
	}
	update := func(object client.Object) {
		if err := s.admin.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   error
	}{
		"its-content": {change: func(object *unstructured.Unstructured) {
			object.Object["data"] = map[string]any{"a": "c"}
			update(object)
		}},
		"released": {func(object *unstructured.Unstructured) {
			object.SetLabels(nil)
			object.SetAnnotations(nil)
			update(object)
		}, staleobjects.ErrChanged},
		"replaced": {func(object *unstructured.Unstructured) {
			if err := s.admin.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			s.make(t, s.marked(s.owner, s.configMap(object.GetName()), ownership.PolicyDelete))
		}, staleobjects.ErrChanged},
		"gone": {change: func(object *unstructured.Unstructured) {
			if err := s.admin.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			object := s.marked(s.owner, s.configMap(name), ownership.PolicyDelete)
			s.make(t, object)
			one := listed(name)
			test.change(object)
			if err := staleobjects.DeleteOrRelease(t.Context(), cluster, one, cli.DryRunNone); !errors.Is(err, test.want) {
				t.Errorf("want %v, got %v", test.want, err)
			}
			if isThere := s.now(t, "ConfigMap", staleNamespace, name) != nil; isThere != (test.want != nil) {
				t.Errorf("it is there: %v", isThere)
			}
		})
	}
}

func (s *replacedCluster) findsByUID(t *testing.T) {
	s.make(t, s.marked(s.owner, s.configMap("late"), ownership.PolicyDelete))
	if err := s.admin.Delete(t.Context(), s.former); err != nil {
		t.Fatal(err)
	}
	command := []string{"stale-objects", "--uid", string(s.former.UID), "--target-kubeconfig", s.Kubeconfig, "--resources", "configmaps"}
	got := succeed(t, command...)
	if !slices.Contains(rowsIn(got.out), "configmaps strays late deleted") || !strings.Contains(got.errs, "No SyncTarget of this workspace has the UID.") {
		t.Errorf("it prints\n%s%s", got.errs, got.out)
	}
	succeed(t, append(command, "--delete", "--yes")...)
	if s.now(t, "ConfigMap", staleNamespace, "late") != nil {
		t.Error("it is left")
	}
}
