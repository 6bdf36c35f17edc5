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

package transport

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// requestKind classifies requests by the limits for their responses. Its text describes the request in messages.
type requestKind string

const (
	kindHealth    requestKind = "its health"
	kindVersion   requestKind = "its version"
	kindDiscovery requestKind = "discovery"
	kindOpenAPI   requestKind = "an OpenAPI document"
	kindReview    requestKind = "a review"
	kindObject    requestKind = "an object"
	kindList      requestKind = "a list"
	kindMetadata  requestKind = "a list of metadata"
	kindWatch     requestKind = "a watch"
)

// requestKindOf returns the kind of a request, without allocating. base is the path of the server's URL.
func requestKindOf(request *http.Request, base string) requestKind {
	path := strings.TrimPrefix(request.URL.Path, base)
	before, api, isAPI := cutAPI(path)
	if request.Method != http.MethodGet {
		if isAPI && isReview(api) {
			return kindReview
		}
		return kindObject
	}
	switch {
	case strings.Contains(before, "/openapi/"):
		return kindOpenAPI
	case isAPI:
		// In the path of an API, objects, namespaces and resources may have the names below.
	case strings.HasSuffix(path, "/version"):
		return kindVersion
	case strings.HasSuffix(path, "/healthz"), strings.HasSuffix(path, "/readyz"), strings.HasSuffix(path, "/livez"):
		return kindHealth
	}
	switch segments := countSegments(api); {
	case segments == 0:
		return kindDiscovery
	case isWatch(request.URL.RawQuery):
		return kindWatch
	case segments > 1:
		return kindObject
	case strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata"):
		return kindMetadata
	default:
		return kindList
	}
}

// cutAPI splits a path at /api/ or /apis/. found is false if the path contains neither.
func cutAPI(path string) (before, api string, found bool) {
	core, groups := strings.Index(path, "/api/"), strings.Index(path, "/apis/")
	at := core
	if core < 0 || groups >= 0 && groups < core {
		at = groups
	}
	if at < 0 {
		return path, "", false
	}
	return path[:at+1], path[at:], true
}

// isReview reports whether a POST to the path of an API creates an access review or a token.
func isReview(api string) bool {
	return strings.HasPrefix(api, "/apis/authorization.k8s.io/") || strings.HasPrefix(api, "/apis/authentication.k8s.io/") ||
		strings.HasSuffix(api, "/token") && strings.Contains(api, "/serviceaccounts/") && countSegments(api) == 3
}

// countSegments returns the number of segments after the version in the path of an API, without the segments of a namespace.
// It is 0 for discovery, 1 for a list, and more for an object.
func countSegments(api string) int {
	rest, isGroup := strings.CutPrefix(api, "/apis/")
	skip := 2
	if !isGroup {
		rest, skip = strings.TrimPrefix(api, "/api/"), 1
	}
	rest = strings.Trim(rest, "/")
	segments := strings.Count(rest, "/") + 1 - skip
	for range skip {
		_, rest, _ = strings.Cut(rest, "/")
	}
	if segments > 2 && strings.HasPrefix(rest, "namespaces/") {
		segments -= 2
	}
	return max(segments, 0)
}

func isWatch(query string) bool {
	for _, parameter := range [...]string{"watch=true", "watch=1"} {
		if at := strings.Index(query, parameter); at == 0 || at > 0 && query[at-1] == '&' {
			return true
		}
	}
	return false
}

// forRequest returns the maximum numbers of bytes and values in the response to a request.
func (l *Limits) forRequest(request *http.Request, kind requestKind) (bytes, values int64) {
	bytes, values = l.bytesFor(kind), l.Values
	if (l.Page > 0 || l.PageValues > 0) && isDivisible(request, kind) {
		bytes, values = minLimit(bytes, l.Page), minLimit(values, l.PageValues)
	}
	return bytes, values
}

// minLimit returns the lower of two limits. If other is zero, it is no limit.
func minLimit(limit, other int64) int64 {
	if other == 0 {
		return limit
	}
	return min(limit, other)
}

// bytesFor returns the maximum number of bytes in the response to a request of a kind.
func (l *Limits) bytesFor(kind requestKind) int64 {
	switch kind {
	case kindHealth, kindVersion:
		return l.Probe
	case kindDiscovery:
		return l.Discovery
	case kindOpenAPI:
		return l.OpenAPI
	case kindReview:
		return l.Review
	case kindList:
		return l.List
	case kindMetadata:
		return l.Metadata
	default:
		return l.Object
	}
}

// timeoutFor returns the timeout of a request.
func (l *Limits) timeoutFor(request *http.Request, kind requestKind) time.Duration {
	if kind != kindWatch {
		return l.Time
	}
	seconds, err := strconv.ParseUint(request.URL.Query().Get("timeoutSeconds"), 10, 16)
	if err != nil {
		// API servers end a watch without a timeout after an hour.
		return time.Hour
	}
	return time.Duration(seconds)*time.Second + l.Time
}

// describeRequest returns a description of a request for messages.
func describeRequest(request *http.Request, kind requestKind) string {
	switch kind {
	case kindObject, kindList, kindMetadata, kindWatch:
		verb, resource := requestmetrics.VerbAndResource(request)
		return verb + " " + resource
	default:
		return string(kind)
	}
}

// isDivisible reports whether a request is for a page of several objects. The client can then request a smaller page.
func isDivisible(request *http.Request, kind requestKind) bool {
	if kind != kindList && kind != kindMetadata {
		return false
	}
	query, err := url.ParseQuery(request.URL.RawQuery)
	if err != nil {
		return false
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	return err == nil && limit > 1
}
