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

package framework

import (
	"net/http"
	"strings"
)

// AnswerWithoutClusterID answers a request for the ID of a cluster as an API server does that has no such object, and reports whether the request
// was one. The hub then takes the server for a new cluster.
func AnswerWithoutClusterID(writer http.ResponseWriter, request *http.Request) bool {
	var about string
	switch {
	case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
		about = `"message":"namespaces \"kube-system\" not found","details":{"kind":"namespaces","name":"kube-system"}`
	case strings.HasSuffix(request.URL.Path, "/logicalclusters/cluster"):
		about = `"message":"the server could not find the requested resource"`
	default:
		return false
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(http.StatusNotFound)
	_, _ = writer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,` + about + `}`))
	return true
}
