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

package kcp

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// WhoAmI returns the user whom a workspace authenticates by the credentials of the configuration.
func WhoAmI(ctx context.Context, workspace *rest.Config) (authenticationv1.UserInfo, error) {
	client, err := authenticationclient.NewForConfig(workspace)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := client.SelfSubjectReviews().Create(requestclass.With(ctx, requestclass.Background), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}
