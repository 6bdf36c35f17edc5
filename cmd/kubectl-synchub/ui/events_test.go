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

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// eventOn returns an event of the hub that is some minutes and a half old. From ten minutes on, a page shows its age without seconds.
func eventOn(apiVersion, kind, namespace, name, reason, message string, minutes int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s.%s.%d", name, strings.ToLower(kind), minutes)},
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, ReportingController: hubComponent,
		LastTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(minutes)*time.Minute - 30*time.Second)),
	}
}

// eventSection returns the section of a page with the events.
func eventSection(t *testing.T, page *html.Node) *html.Node {
	t.Helper()
	sections := find(page, hasAttribute("aria-label", "Events"))
	if len(sections) != 1 {
		t.Fatalf("the page has %d sections with events", len(sections))
	}
	return sections[0]
}

func TestObjectPageShowsEvents(t *testing.T) {
	const hostile = `On guilder: </td><script>alert(1)</script>` + "\x1b[31m"
	objects := []client.Object{
		placementFailing(),
		eventOn("v1", "ConfigMap", "shop", "settings", "Conflict", hostile, 15),
		eventOn("v1", "ConfigMap", "shop", "settings", rules.ReasonWaitingForRollout, "The rollout is stopped.", 12),
		eventOn("v1", "Secret", "shop", "settings", "AnotherKind", "", 11),
		eventOn("example.com/v1", "ConfigMap", "shop", "settings", "AnotherGroup", "", 13),
		eventOn("v1", "ConfigMap", "bank", "settings", "AnotherNamespace", "", 14),
		eventOn("v1", "ConfigMap", "shop", "other", "AnotherName", "", 11),
	}
	section := eventSection(t, objectPageOf(t, absentKubeconfig(t), "shop", objects...))
	want := []string{"Warning|" + rules.ReasonWaitingForRollout + "|12m|The rollout is stopped.", `Warning|Conflict|15m|On guilder: </td><script>alert(1)</script>\x1b[31m`}
	if rows := rowsOf(section); !slices.Equal(rows, want) {
		t.Errorf("want %q\ngot  %q", want, rows)
	}
	if scripts := find(section, func(node *html.Node) bool { return node.Data == "script" }); len(scripts) > 0 {
		t.Error("a message is not escaped")
	}

	for i := range maxObjectEvents {
		objects = append(objects, eventOn("v1", "ConfigMap", "shop", "settings", "Repeated", "", 20+i))
	}
	section = eventSection(t, objectPageOf(t, absentKubeconfig(t), "shop", objects...))
	if rows := rowsOf(section); len(rows) != maxObjectEvents || !strings.Contains(rows[0], rules.ReasonWaitingForRollout) || !strings.Contains(textOf(section), "2 older events are not shown.") {
		t.Errorf("%d rows: %s", len(rows), textOf(section))
	}
	section = eventSection(t, objectPageOf(t, absentKubeconfig(t), "shop", placementFailing()))
	if text := textOf(section); !strings.Contains(text, "The hub has no event about it.") {
		t.Errorf("without an event: %s", text)
	}
}

// kubeconfigOf writes a kubeconfig for a server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["kcp"] = &clientcmdapi.Cluster{Server: server + "/clusters/root:shop"}
	config.Contexts["kcp"] = &clientcmdapi.Context{Cluster: "kcp"}
	config.CurrentContext = "kcp"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// The events of an object in a mailbox are there, where a user may lack the right to list them.
func TestObjectPageShowsEventsOfTheMailbox(t *testing.T) {
	answers := map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "events", Kind: "Event", Namespaced: true, Verbs: metav1.Verbs{"list"}},
		}},
		"/api/v1/namespaces/shop/events": corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{
			*eventOn("v1", "Secret", "shop", "settings", "AnotherKind", "", 11), *eventOn("v1", "ConfigMap", "shop", "settings", "Invalid", "no", 12),
		}},
	}
	mayList, query := true, url.Values{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[strings.TrimPrefix(r.URL.Path, "/clusters/mb")]
		if isList := strings.HasSuffix(r.URL.Path, "/events"); ok && (mayList || !isList) {
			if isList {
				query = r.URL.Query()
			}
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "events is forbidden", Code: http.StatusForbidden})
	}))
	t.Cleanup(server.Close)
	kubeconfig := kubeconfigOf(t, server.URL)
	section := eventSection(t, objectPageOf(t, kubeconfig, "", targetFailing("mb")))
	if rows := rowsOf(section); !slices.Equal(rows, []string{"Warning|Invalid|12m|no"}) {
		t.Errorf("got %q in %s", rows, textOf(section))
	}
	if got := query.Get("fieldSelector"); !strings.Contains(got, "involvedObject.name=settings") || !strings.Contains(got, "reportingComponent=synchub") || query.Get("limit") != "500" {
		t.Errorf("the request is %v", query)
	}
	mayList = false
	section = eventSection(t, objectPageOf(t, kubeconfig, "", targetFailing("mb")))
	if text := textOf(section); !strings.Contains(text, "The events cannot be read: ") || !strings.Contains(text, "forbidden") || strings.Contains(text, "has no event") {
		t.Errorf("without the right: %s", text)
	}
}

func TestEventsLinkToTheirObjects(t *testing.T) {
	failing := edgev2alpha1.PlacementPair{SyncTarget: "florin", ObjectFailure: edgev2alpha1.ObjectFailure{Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: "shop", Name: "web", Reason: "Invalid"}}
	edge := edgev2alpha1.GroupVersion.String()
	page := pageOf(t, absentKubeconfig(t), "/events", placementFailing(failing), targetFailing(""),
		eventOn(edge, "SyncTarget", "", "florin", "Ready", "", 1), eventOn(edge, "EdgePlacement", "", "shop", "Placed", "", 2), eventOn(edge, "Location", "", "north", "Invalid", "", 3),
		eventOn("networking.k8s.io/v1", "NetworkPolicy", "shop", "web", "Invalid", "", 4), eventOn("v1", "ConfigMap", "shop", "settings", "Invalid", "", 5))
	want := []string{
		"SyncTarget florin /targets/root:shop/florin", "EdgePlacement shop /placements/root:shop/shop", "Location north ",
		"NetworkPolicy shop/web /object?name=web&namespace=shop&placement=shop&resource=networkpolicies.networking.k8s.io&workspace=root%3Ashop", "ConfigMap shop/settings ",
	}
	var got []string
	for _, subject := range find(page, hasAttribute("scope", "row")) {
		address := ""
		for _, link := range find(subject, func(node *html.Node) bool { return node.Data == "a" }) {
			address = link.Attr[0].Val
		}
		got = append(got, textOf(subject)+" "+address)
	}
	if !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
}
