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

package synctarget

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// recordsOf reads records as "resource.group/version" for the mailbox's own, followed by "<" and the mailbox's resources,
// separated by commas, that are converted into it; then "+" after the version says that there are its own, too.
func recordsOf(text string) map[schema.GroupResource]syncmanager.Record {
	all := map[schema.GroupResource]syncmanager.Record{}
	for field := range strings.FieldsSeq(text) {
		resource, sources, converted := strings.Cut(field, "<")
		name, version, _ := strings.Cut(resource, "/")
		record := syncmanager.Record{Version: strings.TrimSuffix(version, "+"), Own: !converted || strings.HasSuffix(version, "+")}
		if converted {
			for source := range strings.SplitSeq(sources, ",") {
				record.ConvertedFrom = append(record.ConvertedFrom, schema.ParseGroupResource(source))
			}
		}
		all[schema.ParseGroupResource(name)] = record
	}
	return all
}

func TestSyncedResources(t *testing.T) {
	type entries = []edgev2alpha1.SyncedResource
	known := func(group, resource string) edgev2alpha1.SyncedResource {
		return edgev2alpha1.SyncedResource{
			Group: group, Resource: resource, Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceIncompatible, Reason: "R", Message: "kept", Own: true,
		}
	}
	pending := func(group, resource string) edgev2alpha1.SyncedResource {
		return edgev2alpha1.SyncedResource{Group: group, Resource: resource, Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourcePending, Own: true}
	}
	changed := func(entry edgev2alpha1.SyncedResource, change func(*edgev2alpha1.SyncedResource)) edgev2alpha1.SyncedResource {
		change(&entry)
		return entry
	}
	from := func(own bool, sources ...string) func(*edgev2alpha1.SyncedResource) {
		return func(entry *edgev2alpha1.SyncedResource) {
			entry.Own = own
			for _, source := range sources {
				entry.ConvertedFrom = append(entry.ConvertedFrom, metav1.GroupResource(schema.ParseGroupResource(source)))
			}
		}
	}
	inVersion := func(versions ...string) func(*edgev2alpha1.SyncedResource) {
		return func(entry *edgev2alpha1.SyncedResource) { entry.Versions = versions }
	}
	for name, test := range map[string]struct {
		current entries
		records string
		want    entries
	}{
		"none":      {nil, "", entries{}},
		"the first": {nil, "configmaps/v1", entries{pending("", "configmaps")}},
		"in a stable order": {
			nil, "jobs.batch/v1 secrets/v1 deployments.apps/v1 configmaps/v1",
			entries{pending("", "configmaps"), pending("", "secrets"), pending("apps", "deployments"), pending("batch", "jobs")},
		},
		"one more": {
			entries{known("apps", "deployments")}, "deployments.apps/v1 configmaps/v1",
			entries{pending("", "configmaps"), known("apps", "deployments")},
		},
		"one less": {
			entries{known("", "configmaps"), known("apps", "deployments")}, "deployments.apps/v1", entries{known("apps", "deployments")},
		},
		"another version": {
			entries{known("", "configmaps")}, "configmaps/v2", entries{changed(known("", "configmaps"), inVersion("v2"))},
		},
		"one whose version is not known": {
			entries{known("", "configmaps"), known("apps", "deployments")}, "configmaps/ deployments.apps/v1",
			entries{known("", "configmaps"), known("apps", "deployments")},
		},
		"one of which nothing is known":  {nil, "widgets.example.com/", entries{changed(pending("example.com", "widgets"), inVersion())}},
		"the same name in another group": {entries{known("", "events")}, "events.events.k8s.io/v1", entries{pending("events.k8s.io", "events")}},
		"the last one goes":              {entries{known("", "configmaps")}, "", entries{}},
		"a conversion": {
			nil, "widgets.old/v1<widgets.new", entries{changed(changed(pending("old", "widgets"), from(false, "widgets.new")), func(entry *edgev2alpha1.SyncedResource) { entry.State = edgev2alpha1.SyncedResourceAccepted })},
		},
		"a conversion into what is there itself": {
			entries{known("old", "widgets")}, "widgets.old/v1+<a.new,b.new", entries{changed(known("old", "widgets"), from(true, "a.new", "b.new"))},
		},
		"a conversion ends": {
			entries{changed(known("old", "widgets"), from(true, "a.new"))}, "widgets.old/v1", entries{known("old", "widgets")},
		},
		"only a conversion is left": {
			entries{changed(known("old", "widgets"), from(true, "a.new", "b.new"))}, "widgets.old/v1<b.new",
			entries{changed(known("old", "widgets"), from(false, "b.new"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			records := recordsOf(test.records)
			before := make(entries, len(test.current))
			for i := range test.current {
				test.current[i].DeepCopyInto(&before[i])
			}
			got := syncedResources(test.current, records)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
			if again := syncedResources(got, records); !reflect.DeepEqual(again, got) {
				t.Errorf("first %+v\nthen  %+v", got, again)
			}
			if len(before) > 0 && !reflect.DeepEqual(test.current, before) {
				t.Errorf("what is stored was changed: %+v", test.current)
			}
		})
	}
}

// What was recorded is known again after a restart, whatever stood there before.
func TestRecordsSurvive(t *testing.T) {
	former := syncedResources(nil, recordsOf("configmaps/v2+<secrets widgets.old/v3 jobs.batch/v1<a.new"))
	for _, text := range []string{
		"", "configmaps/v1", "configmaps/v1 secrets/v1 deployments.apps/v1", "widgets.old/v2<widgets.new", "widgets.old/v2+<widgets.new",
		"widgets.old/v2<a.new,b,c.newer configmaps/v1+<secrets secrets/v1", "jobs.batch/v1",
	} {
		for _, current := range [][]edgev2alpha1.SyncedResource{nil, former} {
			want := recordsOf(text)
			if got := recorded(syncedResources(current, want)); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: want %+v, got %+v", text, want, got)
			}
		}
	}
}

func TestRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		entry edgev2alpha1.SyncedResource
		want  syncmanager.Record
	}{
		"by a hub that knew no conversions": {edgev2alpha1.SyncedResource{Versions: []string{"v1"}}, syncmanager.Record{Version: "v1", Own: true}},
		"without a version":                 {edgev2alpha1.SyncedResource{}, syncmanager.Record{Own: true}},
		"with several versions":             {edgev2alpha1.SyncedResource{Versions: []string{"v2", "v1"}, Own: true}, syncmanager.Record{Version: "v2", Own: true}},
		"converted": {
			edgev2alpha1.SyncedResource{Versions: []string{"v1"}, ConvertedFrom: []metav1.GroupResource{{Group: "new", Resource: "a"}}},
			syncmanager.Record{Version: "v1", ConvertedFrom: []schema.GroupResource{{Group: "new", Resource: "a"}}},
		},
		"converted, beside its own": {
			edgev2alpha1.SyncedResource{Versions: []string{"v1"}, Own: true, ConvertedFrom: []metav1.GroupResource{{Resource: "a"}}},
			syncmanager.Record{Version: "v1", Own: true, ConvertedFrom: []schema.GroupResource{{Resource: "a"}}},
		},
	} {
		test.entry.Group, test.entry.Resource = "old", "widgets"
		want := map[schema.GroupResource]syncmanager.Record{{Group: "old", Resource: "widgets"}: test.want}
		if got := recorded([]edgev2alpha1.SyncedResource{test.entry}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: want %+v, got %+v", name, want, got)
		}
	}
}
