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

package selection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IsSystem tells whether an object is one that Kubernetes itself makes in every cluster or namespace. Such an object
// has a counterpart on the target that the target's own controllers keep, so a wildcard never selects it; a config
// that names it does.
func IsSystem(object Object) bool {
	if strings.HasPrefix(object.Namespace, "kube-") {
		return true
	}
	if object.Resource.Group != "" {
		return false
	}
	switch object.Resource.Resource {
	case "namespaces":
		return strings.HasPrefix(object.Name, "kube-") || object.Name == corev1.NamespaceDefault
	case "configmaps":
		return object.Name == "kube-root-ca.crt"
	case "serviceaccounts":
		return object.Name == "default"
	case "secrets":
		return object.SecretType == string(corev1.SecretTypeServiceAccountToken) ||
			object.SecretType == string(corev1.SecretTypeBootstrapToken)
	default:
		return false
	}
}
