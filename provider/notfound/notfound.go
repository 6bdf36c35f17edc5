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

package notfound

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// notServedMessage begins the message of an API server, and of client-go for a 404 without a Status, about a path that is not served.
	notServedMessage = "the server could not find the requested resource"
	// webhookMessage is in every answer of an admission webhook, which chooses the code, the reason and the details itself.
	webhookMessage = "admission webhook \""
)

// Proves reports whether the error is an API server's answer that it has no object of this name: a Status about this very object.
func Proves(err error, resource schema.GroupResource, name string) bool {
	var answered apierrors.APIStatus
	if name == "" || !apierrors.IsNotFound(err) || !errors.As(err, &answered) {
		return false
	}
	status := answered.Status()
	details := status.Details
	return details != nil && details.Name == name && details.Group == resource.Group && details.Kind == resource.Resource &&
		// client-go fills the details from the request if the answer has no Status.
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) &&
		!strings.HasPrefix(status.Message, notServedMessage) && !strings.Contains(status.Message, webhookMessage)
}
