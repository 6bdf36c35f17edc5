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

package requestmetrics

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OtherLabel is the label value of everything without its own label value.
const OtherLabel = "other"

// knownCodes are the status codes that API servers use. A target may answer with hundreds of other codes.
var knownCodes = []int{
	http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent,
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusNotAcceptable, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// CodeLabel returns the label value of a status code: the code itself, or its class, as in 4xx.
func CodeLabel(code int) string {
	switch {
	case slices.Contains(knownCodes, code):
		return strconv.Itoa(code)
	case code >= 100 && code < 600:
		return strconv.Itoa(code/100) + "xx"
	default:
		return OtherLabel
	}
}

// knownResources are the target resources that have a label value of their own: the resources that the hub itself uses, and
// all resources that were ever published. A target may have any number of other resources in its discovery.
var knownResources = struct {
	sync.RWMutex
	resources map[string]struct{}
}{resources: map[string]struct{}{
	"none": {}, "namespaces": {}, "customresourcedefinitions.apiextensions.k8s.io": {}, "customresourcedefinitions": {}, "logicalclusters": {},
	"serviceaccounts": {}, "selfsubjectrulesreviews": {}, "selfsubjectaccessreviews": {},
}}

// RegisterResource gives a resource its own label value. It is safe for concurrent use.
func RegisterResource(resource schema.GroupResource) {
	knownResources.Lock()
	defer knownResources.Unlock()
	knownResources.resources[resource.Resource], knownResources.resources[resource.String()] = struct{}{}, struct{}{}
}

// ResourceLabel returns the label value of a target resource, such as deployments, deployments/status or deployments.apps.
func ResourceLabel(resource string) string {
	name, subresource, has := strings.Cut(resource, "/")
	knownResources.RLock()
	defer knownResources.RUnlock()
	if _, ok := knownResources.resources[name]; !ok || has && !slices.Contains([]string{"status", "scale", "token", "finalize"}, subresource) {
		return OtherLabel
	}
	return resource
}
