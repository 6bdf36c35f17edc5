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

package notfound_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/notfound"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

const aboutTheJob = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"jobs.batch \"once\" not found","reason":"NotFound","details":{"name":"once","group":"batch","kind":"jobs"},"code":404}`

// The error is the error of client-go for the answer to a request for the Job.
func TestProves(t *testing.T) {
	for name, test := range map[string]struct {
		code              int
		contentType, body string
		proves            bool
	}{
		"the Job is gone":                  {404, "application/json", aboutTheJob, true},
		"the API is not served":            {404, "text/plain", "404 page not found", false},
		"a proxy has a page":               {404, "text/html", "<html>nothing here</html>", false},
		"a proxy has JSON":                 {404, "application/json", `{"error":"no route"}`, false},
		"a proxy has an empty body":        {404, "", "", false},
		"a Status about a path":            {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{"name":"once","group":"batch","kind":"jobs"},"code":404}`, false},
		"a Status about nothing":           {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not found","reason":"NotFound","code":404}`, false},
		"the namespace is missing":         {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"namespaces \"once\" not found","reason":"NotFound","details":{"name":"once","kind":"namespaces"},"code":404}`, false},
		"another Job is gone":              {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"jobs.batch \"twice\" not found","reason":"NotFound","details":{"name":"twice","group":"batch","kind":"jobs"},"code":404}`, false},
		"a kind of another group":          {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"jobs.example.org \"once\" not found","reason":"NotFound","details":{"name":"once","group":"example.org","kind":"jobs"},"code":404}`, false},
		"an admission webhook":             {404, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"admission webhook \"a.example.org\" denied the request: gone","reason":"NotFound","details":{"name":"once","group":"batch","kind":"jobs"},"code":404}`, false},
		"a gone resourceVersion":           {410, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"expired","reason":"Gone","details":{"name":"once","group":"batch","kind":"jobs"},"code":410}`, false},
		"the API server cannot be reached": {503, "text/plain", "service unavailable", false},
		"the object exists":                {200, "application/json", `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"once"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Resource(jobs).Namespace("shop").Get(t.Context(), "once", metav1.GetOptions{})
			if got := notfound.Proves(fmt.Errorf("read: %w", err), jobs.GroupResource(), "once"); got != test.proves {
				t.Errorf("%v proves that the object is gone: %v, want %v", err, got, test.proves)
			}
		})
	}
}

func TestProvesNeedsAName(t *testing.T) {
	if notfound.Proves(apierrors.NewNotFound(jobs.GroupResource(), ""), jobs.GroupResource(), "") {
		t.Error("an answer to a list proves nothing")
	}
	if notfound.Proves(errors.New("not found"), jobs.GroupResource(), "once") || notfound.Proves(nil, jobs.GroupResource(), "once") {
		t.Error("only an answer of a server proves something")
	}
}
