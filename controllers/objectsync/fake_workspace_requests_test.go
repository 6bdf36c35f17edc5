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

package objectsync

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// answer writes the response to a request.
func (w *fakeWorkspace) answer(writer http.ResponseWriter, code int, content any) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	if err := json.NewEncoder(writer).Encode(content); err != nil {
		w.t.Log(err)
	}
}

func failure(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details,
	}
}

// parsedRequest is the object or resource that a request is about.
type parsedRequest struct {
	resource        schema.GroupVersionResource
	namespace, name string
	subresource     string
}

// parse reads .../clusters/<cluster>/(api|apis/<group>)/<version>[/namespaces/<namespace>]/<resource>[/<name>[/<subresource>]].
func parse(path string) (parsedRequest, bool) {
	_, rest, found := strings.Cut(path, "/clusters/")
	parts := strings.Split(rest, "/")
	if !found || len(parts) < 4 {
		return parsedRequest{}, false
	}
	var is parsedRequest
	switch parts[1] {
	case "api":
		is.resource.Version, parts = parts[2], parts[3:]
	case "apis":
		is.resource.Group, is.resource.Version, parts = parts[2], parts[3], parts[4:]
	default:
		return parsedRequest{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		is.namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&is.resource.Resource, &is.name, &is.subresource} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
	return is, is.resource.Resource != ""
}

func (w *fakeWorkspace) serve(writer http.ResponseWriter, request *http.Request) {
	is, ok := parse(request.URL.Path)
	w.lock.Lock()
	_, served := w.objects[is.resource]
	w.lock.Unlock()
	switch {
	case !ok, !served:
		w.answer(writer, http.StatusNotFound, failure(404, metav1.StatusReasonNotFound, "not served", nil))
	case request.Method == http.MethodGet && request.URL.Query().Get("sendInitialEvents") != "":
		w.answer(writer, http.StatusUnprocessableEntity, failure(422, metav1.StatusReasonInvalid, "no", nil))
	case request.Method == http.MethodGet && request.URL.Query().Get("watch") != "":
		w.watch(writer, request, is)
	case request.Method == http.MethodGet && is.name == "":
		w.answer(writer, http.StatusOK, w.list(is.resource, strings.Contains(request.URL.Path, "/clusters/*/")))
	default:
		body, err := io.ReadAll(request.Body)
		if err != nil {
			w.t.Log(err)
		}
		object, failed := w.do(request.Method, is, body)
		if failed != nil {
			w.answer(writer, int(failed.Code), failed)
			return
		}
		w.answer(writer, http.StatusOK, object)
	}
}

func (w *fakeWorkspace) list(resource schema.GroupVersionResource, everywhere bool) any {
	w.lock.Lock()
	defer w.lock.Unlock()
	items := []any{}
	if !w.hidden[resource] {
		for _, object := range w.objects[resource] {
			if !everywhere || !w.staleNames[object.GetName()] {
				items = append(items, object.DeepCopy().Object)
			}
		}
	}
	return map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(w.version)}, "items": items}
}

func (w *fakeWorkspace) watch(writer http.ResponseWriter, request *http.Request, is parsedRequest) {
	since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(http.StatusOK)
	flusher, _ := writer.(http.Flusher)
	flusher.Flush()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-request.Context().Done():
		case <-stop:
		}
		w.lock.Lock()
		w.changed.Broadcast()
		w.lock.Unlock()
	}()
	next := 0
	for {
		w.lock.Lock()
		for next == len(w.events) && !w.closed && request.Context().Err() == nil {
			w.changed.Wait()
		}
		ended := w.closed || request.Context().Err() != nil
		pending := slices.Clone(w.events[next:])
		next = len(w.events)
		w.lock.Unlock()
		if ended {
			return
		}
		for _, event := range pending {
			if event.resource == is.resource && event.version > since {
				if err := json.NewEncoder(writer).Encode(map[string]any{"type": event.kind, "object": event.object.Object}); err != nil {
					return
				}
			}
		}
		flusher.Flush()
	}
}

// do executes a request about one object.
func (w *fakeWorkspace) do(method string, is parsedRequest, body []byte) (any, *metav1.Status) {
	w.lock.Lock()
	defer w.lock.Unlock()
	key := types.NamespacedName{Namespace: is.namespace, Name: is.name}
	found := w.objects[is.resource][key]
	if is.resource != eventsResource && method != http.MethodGet {
		w.writes = append(w.writes, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", method, is.resource.Resource, is.name, is.subresource)))
	}
	if is.resource == apiBindings && method == http.MethodGet {
		w.bindingReadCount++
	}
	if refused := w.refuse(method, is.name); refused != nil && method != http.MethodGet {
		return nil, refused
	}
	switch {
	case method == http.MethodPost:
		return w.post(is, body)
	case found == nil || w.hidden[is.resource]:
		return nil, failure(404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Kind: is.resource.Resource, Name: is.name})
	case method == http.MethodGet:
		return found.Object, nil
	case method == http.MethodDelete:
		return w.delete(is, found, body)
	default:
		return w.change(method, is, found, body)
	}
}

func (w *fakeWorkspace) delete(is parsedRequest, found *unstructured.Unstructured, body []byte) (any, *metav1.Status) {
	options := metav1.DeleteOptions{}
	if err := json.Unmarshal(body, &options); err == nil && options.Preconditions != nil {
		uid, version := options.Preconditions.UID, options.Preconditions.ResourceVersion
		if uid != nil && *uid != found.GetUID() || version != nil && *version != found.GetResourceVersion() {
			return nil, failure(409, metav1.StatusReasonConflict, "another uid or version", nil)
		}
	}
	w.terminate(is.resource, found)
	return found.Object, nil
}

func (w *fakeWorkspace) post(is parsedRequest, body []byte) (any, *metav1.Status) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, failure(400, metav1.StatusReasonBadRequest, err.Error(), nil)
	}
	if object.GetName() == "" {
		object.SetName(unique("generated"))
	}
	_, hasNamespaces := w.objects[namespaces]
	if is.namespace != "" && hasNamespaces && w.objects[namespaces][types.NamespacedName{Name: is.namespace}] == nil {
		return nil, failure(404, metav1.StatusReasonNotFound, "no namespace", &metav1.StatusDetails{Kind: "namespaces", Name: is.namespace})
	}
	if w.objects[is.resource][keyOf(object)] != nil {
		return nil, failure(409, metav1.StatusReasonAlreadyExists, "it exists", nil)
	}
	return w.create(is.resource, object).Object, nil
}

// change executes a PUT or a merge patch.
func (w *fakeWorkspace) change(method string, is parsedRequest, found *unstructured.Unstructured, body []byte) (any, *metav1.Status) {
	if method == http.MethodPatch {
		before, err := found.MarshalJSON()
		if err != nil {
			return nil, failure(500, metav1.StatusReasonInternalError, err.Error(), nil)
		}
		if body, err = jsonpatch.MergePatch(before, body); err != nil {
			return nil, failure(400, metav1.StatusReasonBadRequest, err.Error(), nil)
		}
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(body); err != nil {
		return nil, failure(400, metav1.StatusReasonBadRequest, err.Error(), nil)
	}
	if after.GetUID() != found.GetUID() || after.GetResourceVersion() != "" && after.GetResourceVersion() != found.GetResourceVersion() {
		return nil, failure(409, metav1.StatusReasonConflict, "it has changed", nil)
	}
	if is.subresource == "status" {
		whole := found.DeepCopy()
		whole.Object["status"] = after.Object["status"]
		after = whole
	}
	after.SetDeletionTimestamp(found.GetDeletionTimestamp())
	after.SetResourceVersion(found.GetResourceVersion())
	if same, _ := json.Marshal(after.Object); string(same) == mustMarshal(found.Object) {
		return found.Object, nil
	}
	return w.store(is.resource, after).Object, nil
}

func mustMarshal(object map[string]any) string {
	data, _ := json.Marshal(object)
	return string(data)
}
