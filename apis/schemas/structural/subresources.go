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

package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Paths of the replicas of scalable kinds. Every built-in kind with the subresource scale has its replicas there.
const (
	specReplicas   = ".spec.replicas"
	statusReplicas = ".status.replicas"
)

// setSubresources gives the version the subresources that the cluster serves and kcp can serve too. A kind whose
// selector is not a string, such as a Deployment, gets a scale subresource without selector: autoscalers work on the
// target.
func setSubresources(version *apiextensionsv1.CustomResourceDefinitionVersion, kind Kind) (notes []Note) {
	subresources := &apiextensionsv1.CustomResourceSubresources{}
	if kind.Status {
		subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
	}
	if kind.Scale {
		root := version.Schema.OpenAPIV3Schema
		if root.Properties["spec"].Properties["replicas"].Type == typeInteger &&
			root.Properties["status"].Properties["replicas"].Type == typeInteger {
			subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: specReplicas, StatusReplicasPath: statusReplicas,
			}
		} else {
			notes = append(notes, Note{Path: ".spec", Reason: "the subresource scale is left out: " + specReplicas + " or " + statusReplicas + " is no integer"})
		}
	}
	if *subresources != (apiextensionsv1.CustomResourceSubresources{}) {
		version.Subresources = subresources
	}
	return notes
}
