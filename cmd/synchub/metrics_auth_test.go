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
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewServer answers reviews of tokens and of access as an API server does, and refuses all tokens but "good".
func reviewServer(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch request.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			review := authenticationv1.TokenReview{}
			if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			switch review.Spec.Token {
			case "good":
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "reader"}}
			case "trouble":
				http.Error(w, "down for maintenance", http.StatusForbidden)
				return
			default:
				review.Status = authenticationv1.TokenReviewStatus{Error: "[invalid bearer token]"}
			}
			review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
			answer = review
		default:
			review := authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
			review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
			answer = review
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func TestRefusedTokensDifferFromOtherErrors(t *testing.T) {
	filter, err := authenticateMetrics(reviewServer(t), http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if err != nil {
		t.Fatal(err)
	}
	for authorization, want := range map[string]int{
		"":               http.StatusUnauthorized,
		"Basic 5ecret":   http.StatusUnauthorized,
		"Bearer":         http.StatusUnauthorized,
		"Bearer 5ecret":  http.StatusUnauthorized,
		"bearer 5ecret":  http.StatusUnauthorized,
		"Bearer good":    http.StatusOK,
		"Bearer trouble": http.StatusInternalServerError,
	} {
		for range 2 {
			request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil), httptest.NewRecorder()
			if authorization != "" {
				request.Header.Set("Authorization", authorization)
			}
			metrics.ServeHTTP(answer, request)
			if answer.Code != want {
				t.Errorf("%q: got %d, want %d: %s", authorization, answer.Code, want, answer.Body)
			}
		}
	}
}
