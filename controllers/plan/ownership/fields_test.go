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

package ownership_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const pod = ".spec.template.spec"

// drifts are changes by another client to an applied object, with the paths to report.
var drifts = map[string]struct {
	kind   string
	change func(t *testing.T, object map[string]any)
	want   []string
	// removed is true if no manager owns the paths afterwards.
	removed bool
}{
	"a field": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec")["replicas"] = int64(5)
	}, []string{".spec.replicas"}, false},
	"a field of a list's item": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "containers", 0, "env", 0)["value"] = "2"
	}, []string{pod + `.containers[name="web"].env[name="A"].value`}, false},
	"another form of a field": {"Deployment", func(t *testing.T, object map[string]any) {
		variable := at(t, object, "spec", "template", "spec", "containers", 0, "env", 0)
		delete(variable, "value")
		variable["valueFrom"] = map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}
	}, []string{pod + `.containers[name="web"].env[name="A"].value`}, true},
	"a key that we left to the server": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "containers", 0, "ports", 3)["protocol"] = "UDP"
	}, []string{pod + `.containers[name="web"].ports[3]`}, false},
	"one of two equal numbers": {"Service", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "ports", 2)["name"] = "other"
	}, []string{`.spec.ports[port=53,protocol="UDP"].name`}, false},
	"the one of three equal numbers whose protocol we left to the server": {"Service", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "ports", 0)["name"] = "other"
	}, []string{`.spec.ports[port=53,protocol="TCP"].name`}, false},
	"one of three equal numbers is removed": {"Service", func(t *testing.T, object map[string]any) {
		spec := at(t, object, "spec")
		spec["ports"] = spec["ports"].([]any)[1:]
	}, []string{".spec.ports[0]"}, true},
	"an item is removed": {"Deployment", func(t *testing.T, object map[string]any) {
		spec := at(t, object, "spec", "template", "spec")
		spec["containers"] = spec["containers"].([]any)[:1]
	}, []string{pod + `.containers[name="sidecar"]`}, true},
	"all items go": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "containers", 0)["ports"] = []any{}
	}, []string{pod + `.containers[name="web"].ports`}, true},
	"a member of a set is removed": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "metadata")["finalizers"] = []any{"example.com/two"}
	}, []string{`.spec.template.metadata.finalizers[="example.com/one"]`}, true},
	"an atomic list": {"Deployment", func(t *testing.T, object map[string]any) {
		spec := at(t, object, "spec", "template", "spec")
		spec["tolerations"] = append(spec["tolerations"].([]any), map[string]any{"key": "c", "operator": "Exists"})
	}, []string{pod + ".tolerations"}, false},
	"an atomic map": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "nodeSelector")["more"] = "x"
	}, []string{pod + ".nodeSelector"}, false},
	"an empty map becomes something else": {"Deployment", func(t *testing.T, object map[string]any) {
		volume := at(t, object, "spec", "template", "spec", "volumes", 0)
		delete(volume, "emptyDir")
		volume["hostPath"] = map[string]any{"path": "/"}
	}, []string{pod + `.volumes[name="scratch"].emptyDir`}, true},
	"an empty map is filled": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "metadata")["annotations"] = map[string]any{"theirs": "x"}
	}, []string{".spec.template.metadata.annotations"}, false},
	"the last field of a struct": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "securityContext")["runAsUser"] = int64(0)
	}, []string{pod + ".securityContext"}, false},
	"a quantity": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec", "containers", 0, "resources", "requests")["cpu"] = "1001m"
	}, []string{pod + `.containers[name="web"].resources.requests.cpu`}, false},
	"a label": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "metadata", "labels")["app"] = "other"
	}, []string{".metadata.labels.app"}, false},
	"a label whose key begins like another's": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "metadata", "labels")["app.kubernetes.io/name"] = "other"
	}, []string{".metadata.labels.app.kubernetes.io/name"}, false},
	"a label is removed": {"Deployment", func(t *testing.T, object map[string]any) {
		delete(at(t, object, "metadata", "labels"), "app.kubernetes.io/name")
	}, []string{".metadata.labels.app.kubernetes.io/name"}, true},
	"the mark is removed": {"Deployment", func(t *testing.T, object map[string]any) {
		delete(at(t, object, "metadata", "annotations"), ownership.MarkAnnotation)
	}, []string{".metadata.annotations." + ownership.MarkAnnotation}, true},
	"data": {"ConfigMap", func(t *testing.T, object map[string]any) {
		at(t, object, "data")["b.properties"] = "k=w"
	}, []string{".data.b.properties"}, false},
	"data that was empty": {"ConfigMap", func(t *testing.T, object map[string]any) {
		at(t, object, "data")["c"] = "filled"
	}, []string{".data.c"}, false},
	"the last binary data": {"ConfigMap", func(_ *testing.T, object map[string]any) {
		delete(object, "binaryData")
	}, []string{".binaryData"}, true},
	"secret data": {"Secret", func(t *testing.T, object map[string]any) {
		at(t, object, "data")["user"] = "Yg=="
	}, []string{".data.user"}, false},
	"several": {"ConfigMap", func(_ *testing.T, object map[string]any) {
		object["data"] = map[string]any{"a": "other"}
		delete(object, "binaryData")
	}, []string{".binaryData", ".data"}, false},

	"nothing": {"Deployment", func(*testing.T, map[string]any) {}, nil, true},
	"status": {"Deployment", func(_ *testing.T, object map[string]any) {
		object["status"] = map[string]any{"replicas": int64(2)}
	}, nil, true},
	"fields of other managers": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "metadata", "labels")["theirs"] = "x"
		at(t, object, "metadata", "annotations")["theirs"] = "x"
		at(t, object, "metadata")["finalizers"] = []any{"example.com/theirs"}
		at(t, object, "spec")["minReadySeconds"] = int64(3)
		container := at(t, object, "spec", "template", "spec", "containers", 0)
		container["env"] = append(container["env"].([]any), map[string]any{"name": "THEIRS", "value": "x"})
		container["ports"] = append(container["ports"].([]any), map[string]any{"containerPort": int64(9090), "protocol": "SCTP"})
	}, nil, true},
	"the same quantity in another form": {"Deployment", func(t *testing.T, object map[string]any) {
		requests := at(t, object, "spec", "template", "spec", "containers", 0, "resources", "requests")
		if requests["cpu"] != "1" || requests["memory"] != "1Gi" {
			t.Fatalf("the server did not normalise the quantities: %v", requests)
		}
		requests["cpu"], requests["memory"] = "1.0", "1048576Ki"
	}, nil, true},
	"another order of a keyed list": {"Deployment", func(t *testing.T, object map[string]any) {
		slices.Reverse(at(t, object, "spec", "template", "spec")["containers"].([]any))
	}, nil, true},
	"an empty list is filled, as in an aggregated ClusterRole": {"ClusterRole", func(_ *testing.T, object map[string]any) {
		object["rules"] = []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"pods"}}}
	}, nil, true},
	"an empty keyed list is filled": {"Deployment", func(t *testing.T, object map[string]any) {
		at(t, object, "spec", "template", "spec")["imagePullSecrets"] = []any{map[string]any{"name": "theirs"}}
	}, nil, true},
}

func TestDrift(t *testing.T) {
	for name, test := range drifts {
		t.Run(name, func(t *testing.T) {
			desired := fixtures.Map(t, manifests[test.kind])
			server := newServer(t, desired)
			server.apply(hubManager, desired)
			server.wantUnowned(desired)

			server.update("somebody", func(object map[string]any) { test.change(t, object) })
			server.wantUnowned(desired, test.want...)
			var wantHolders []string
			if !test.removed {
				wantHolders = []string{"somebody"}
			}
			holders, err := ownership.ManagersOf(desired, server.managedFields(), test.want)
			if err != nil || !slices.Equal(holders, wantHolders) {
				t.Errorf("holders: want %v, got %v, %v", wantHolders, holders, err)
			}

			server.apply(hubManager, desired)
			server.wantUnowned(desired)
		})
	}
}

// Right after an apply, no path may be unowned, for any object. Otherwise the hub would write endlessly.
func TestNothingUnownedAfterApply(t *testing.T) {
	for name, text := range manifests {
		t.Run(name, func(t *testing.T) {
			desired := fixtures.Map(t, text)
			server := newServer(t, desired)
			server.apply(hubManager, desired)
			server.wantUnowned(desired)
		})
	}
}

func TestTakenByForce(t *testing.T) {
	desired := fixtures.Map(t, deployment)
	theirs := fixtures.Map(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 7
  template: {spec: {securityContext: {runAsUser: 1000}}}
`)
	server := newServer(t, desired)
	server.apply(hubManager, desired)
	server.apply("somebody", theirs)
	// Another manager that applies the hub's values shares their ownership.
	server.wantUnowned(desired, ".spec.replicas")
	holders, err := ownership.ManagersOf(desired, server.managedFields(), []string{".spec.replicas"})
	if want := []string{"somebody"}; err != nil || !slices.Equal(holders, want) {
		t.Errorf("holders: want %v, got %v, %v", want, holders, err)
	}
	server.apply(hubManager, desired)
	server.wantUnowned(desired)
}

// An empty map that another client fills costs one apply. Later changes in the map are no drift.
func TestEmptyMapConverges(t *testing.T) {
	desired := fixtures.Map(t, deployment)
	server := newServer(t, desired)
	server.apply(hubManager, desired)
	for _, value := range []string{"first", "second", "third"} {
		server.update("somebody", func(object map[string]any) {
			at(t, object, "spec", "template", "metadata")["annotations"] = map[string]any{"theirs": value}
		})
		if value == "first" {
			server.wantUnowned(desired, ".spec.template.metadata.annotations")
			server.apply(hubManager, desired)
		}
		server.wantUnowned(desired)
		if got := at(t, server.object(), "spec", "template", "metadata", "annotations")["theirs"]; got != value {
			t.Errorf("the hub overwrote what is not its own: %v", got)
		}
	}
}

// If the server sets defaults for two of three keys, an item must not be taken for another, lost one.
func TestOneElementIsOneItem(t *testing.T) {
	desired := fixtures.Map(t, "{apiVersion: example.com/v1, kind: Any, list: [{name: a}, {name: a, zone: z}]}")
	element := func(zone string) string {
		return `"k:{\"kind\":\"k\",\"name\":\"a\",\"zone\":\"` + zone + `\"}":{".":{},"f:name":{},"f:zone":{}}`
	}
	if got := unowned(t, desired, []byte(`{"f:list":{`+element("default")+`,`+element("z")+`}}`)); len(got) > 0 {
		t.Errorf("want nothing, got %v", got)
	}
	if got := unowned(t, desired, []byte(`{"f:list":{`+element("z")+`}}`)); len(got) != 1 {
		t.Errorf("want one of the two, got %v", got)
	}
}

// The entry may be missing, because its API version was removed or a client cleared managedFields.
func TestNoEntry(t *testing.T) {
	desired := fixtures.Map(t, deployment)
	for name, entry := range map[string][]byte{"none": nil, "empty": {}, "of nothing": []byte("{}")} {
		if got, want := unowned(t, desired, entry), []string{".metadata", ".spec"}; !slices.Equal(got, want) {
			t.Errorf("%s: want %v, got %v", name, want, got)
		}
	}
	if got := unowned(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "status": "x"}, nil); len(got) > 0 {
		t.Errorf("found %v in an object without fields", got)
	}
}

func TestUnreadableEntry(t *testing.T) {
	for _, entry := range []string{"x", "[", "{", `{"f:spec"`, `{"f:spec":{}`, `{"i:x":{}}`} {
		if paths, err := ownership.UnownedPaths(fixtures.Map(t, configMap), []byte(entry)); err == nil {
			t.Errorf("read %s and found %v", entry, paths)
		}
		if holders, err := ownership.ManagersOf(fixtures.Map(t, configMap), []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(entry)}}, nil); err == nil {
			t.Errorf("read %s and found %v", entry, holders)
		}
	}
	if holders, err := ownership.ManagersOf(fixtures.Map(t, configMap), []metav1.ManagedFieldsEntry{{Manager: "x"}}, []string{".data.a"}); err != nil || len(holders) > 0 {
		t.Errorf("an entry without fields: %v, %v", holders, err)
	}
}
