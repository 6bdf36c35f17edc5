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
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// tokenReviewTTL is how long the answer about a token is cached, as in the filter of controller-runtime.
	tokenReviewTTL = time.Minute
	// tokenReviewTimeout bounds one question about a token.
	tokenReviewTimeout = 10 * time.Second
)

// authenticateMetrics is the filter of controller-runtime, and answers 401 to a token that the hosting cluster refuses. The
// filter alone answers 500, as if the cluster had not answered: its authenticator returns an error in both cases.
func authenticateMetrics(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, httpClient)
	if err != nil {
		return nil, err
	}
	reviews, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	tokens := cache.New(tokenReviewer{reviews.TokenReviews()}, false, tokenReviewTTL, tokenReviewTTL)
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
		filtered, err := filter(log, metrics)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if isRefused(request, tokens) {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			filtered.ServeHTTP(w, request)
		}), nil
	}, nil
}

// isRefused reports whether the hosting cluster has refused the token of a request. It is false if there is no token, or if
// the cluster does not answer; the filter behind reports these cases.
func isRefused(request *http.Request, tokens authenticator.Token) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(request.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return false
	}
	_, isValid, err := tokens.AuthenticateToken(request.Context(), token)
	return err == nil && !isValid
}

// tokenReviewer requests token reviews from an API server. An error means that the server has not answered.
type tokenReviewer struct {
	reviews authenticationclient.TokenReviewInterface
}

// AuthenticateToken implements authenticator.Token.
func (r tokenReviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenReviewTimeout)
	defer cancel()
	answer, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("cannot review a token for the metrics: %w", err)
	}
	return &authenticator.Response{}, answer.Status.Authenticated, nil
}
