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

package requests

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Other is the label of what has no name of its own in metrics.
const Other = "other"

// codes are those that API servers answer with. A target may answer with any of hundreds.
var codes = []int{
	http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent,
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusNotAcceptable, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// Code returns the label of a status code: itself, or its class, as in 4xx.
func Code(code int) string {
	switch {
	case slices.Contains(codes, code):
		return strconv.Itoa(code)
	case code >= 100 && code < 600:
		return strconv.Itoa(code/100) + "xx"
	default:
		return Other
	}
}

// named are the resources of targets that have a name in metrics: those that the hub uses by itself, and those that were ever
// published. A target may name any others in its discovery.
var named = struct {
	sync.RWMutex
	resources map[string]struct{}
}{resources: map[string]struct{}{
	"none": {}, "namespaces": {}, "customresourcedefinitions.apiextensions.k8s.io": {}, "customresourcedefinitions": {}, "logicalclusters": {},
	"serviceaccounts": {}, "selfsubjectrulesreviews": {}, "selfsubjectaccessreviews": {},
}}

// Publish gives a resource a name in metrics.
func Publish(resource schema.GroupResource) {
	named.Lock()
	defer named.Unlock()
	named.resources[resource.Resource], named.resources[resource.String()] = struct{}{}, struct{}{}
}

// Resource returns the label of a resource of a target, in the form of deployments, deployments/status or deployments.apps.
func Resource(resource string) string {
	name, subresource, has := strings.Cut(resource, "/")
	named.RLock()
	defer named.RUnlock()
	if _, ok := named.resources[name]; !ok || has && !slices.Contains([]string{"status", "scale", "token", "finalize"}, subresource) {
		return Other
	}
	return resource
}
