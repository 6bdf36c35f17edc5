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

package targets

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// impersonationKey is the key of the impersonated user in a context.
type impersonationKey struct{}

// Impersonate returns a context whose writes to a target impersonate a user. The hub reads as itself. An empty user is the hub.
func Impersonate(ctx context.Context, user string) context.Context {
	if ctx.Value(impersonationKey{}) == nil && user == "" {
		return ctx
	}
	return context.WithValue(ctx, impersonationKey{}, user)
}

// impersonateUser wraps a transport, and adds the user of the context to each write. It adds no groups: for a ServiceAccount the API
// server adds its groups itself, and the right to impersonate groups would be one for all groups.
func impersonateUser(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		user, _ := request.Context().Value(impersonationKey{}).(string)
		if user == "" || request.Method == http.MethodGet {
			return next.RoundTrip(request)
		}
		request = request.Clone(request.Context())
		request.Header.Set(authenticationv1.ImpersonateUserHeader, user)
		return next.RoundTrip(request)
	})
}
