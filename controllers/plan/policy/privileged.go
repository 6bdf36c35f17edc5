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

package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// privilegedGroups are API groups whose objects all act inside kcp: they grant rights, serve APIs, admit or refuse requests, or
// configure the sync.
var privilegedGroups = map[string]bool{
	"admissionregistration.k8s.io": true,
	"apiextensions.k8s.io":         true,
	"apiregistration.k8s.io":       true,
	"authentication.k8s.io":        true,
	"authorization.k8s.io":         true,
	"certificates.k8s.io":          true,
	"edge.kubestellar.io":          true,
	"flowcontrol.apiserver.k8s.io": true,
	"rbac.authorization.k8s.io":    true,
	"synchub.dev":                  true,
}

// privilegedResources are privileged resources of groups with other, unprivileged resources.
var privilegedResources = map[schema.GroupResource]bool{
	{Resource: "limitranges"}:    true,
	{Resource: "resourcequotas"}: true,
}

// IsPrivileged reports whether objects of an API act inside kcp.
func IsPrivileged(api schema.GroupResource) bool {
	return privilegedGroups[api.Group] || privilegedResources[api] || api.Group == "kcp.io" || strings.HasSuffix(api.Group, ".kcp.io")
}

// CheckUpsync returns a [*DeniedError] if objects of an API of the target may not be upsynced as objects of an API of the
// mailbox. It checks both APIs: an API that is harmless in kcp today may get a meaning there later.
func CheckUpsync(onTarget, inMailbox schema.GroupResource) error {
	privileged := inMailbox
	if !IsPrivileged(privileged) {
		privileged = onTarget
	}
	if !IsPrivileged(privileged) {
		return nil
	}
	return &DeniedError{ReasonPrivilegedUpsync, privileged.String() +
		" acts inside kcp, so an administrator of the target would act in the mailbox: remove it from upsync, or allow it by spec.privilegedUpsync of its PublishedResource"}
}
