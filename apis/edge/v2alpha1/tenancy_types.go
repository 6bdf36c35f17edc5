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

package v2alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Tenancy determines how several workload workspaces share one cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceTemplate) || self.namespaces == 'PerWorkspace'",message="namespaceTemplate needs namespaces: PerWorkspace",fieldPath=".namespaceTemplate"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceLabels) || self.namespaces == 'PerWorkspace'",message="namespaceLabels needs namespaces: PerWorkspace",fieldPath=".namespaceLabels"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterScoped) || self.namespaces == 'PerWorkspace'",message="clusterScoped needs namespaces: PerWorkspace",fieldPath=".clusterScoped"
// +kubebuilder:validation:XValidation:rule="!has(self.resourceQuota) || self.namespaces == 'PerWorkspace'",message="resourceQuota needs namespaces: PerWorkspace",fieldPath=".resourceQuota"
// +kubebuilder:validation:XValidation:rule="!has(self.limitRange) || self.namespaces == 'PerWorkspace'",message="limitRange needs namespaces: PerWorkspace",fieldPath=".limitRange"
// +kubebuilder:validation:XValidation:rule="self.identity != 'Workspace' || self.namespaces == 'PerWorkspace'",message="identity: Workspace needs namespaces: PerWorkspace",fieldPath=".identity"
// +kubebuilder:validation:XValidation:rule="has(self.role) == (self.identity == 'Workspace')",message="role is required with identity: Workspace, and has no effect without it",fieldPath=".role"
// +kubebuilder:validation:XValidation:rule="self.mailboxIdentity == 'Hub' || self.identity == 'Workspace'",message="mailboxIdentity: Mailbox needs identity: Workspace",fieldPath=".mailboxIdentity"
type Tenancy struct {
	// namespaces determines the names of the namespaces of workload workspaces on the cluster. With Shared, the default, a
	// namespace has the same name there, so that the first workspace has the name. With PerWorkspace each workspace has
	// namespaces of its own. After a change the hub creates the objects under the new names before it removes them from
	// the old ones.
	// +optional
	// +kubebuilder:default=Shared
	Namespaces NamespaceTenancy `json:"namespaces,omitempty"`

	// namespaceTemplate is the name on the cluster of a namespace of a workload workspace. It must contain {namespace} and
	// {hash} once; {hash} stands for 12 characters that identify the workspace's logical cluster. A longer name than
	// Kubernetes allows is shortened and gets a hash of the namespace. The default is {namespace}-{hash}.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.split('{namespace}').size() == 2 && self.split('{hash}').size() == 2",message="the template must contain {namespace} and {hash} once"
	// +kubebuilder:validation:XValidation:rule="self.replace('{namespace}', 'a').replace('{hash}', 'a').matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the template must consist of {namespace}, {hash}, lower case letters, digits and hyphens, without a hyphen at its ends"
	// +kubebuilder:validation:XValidation:rule="size(self.replace('{namespace}', '').replace('{hash}', '')) <= 24",message="the template may have at most 24 characters beside {namespace} and {hash}"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kube-')",message="namespaces that begin with kube- are Kubernetes' own"
	NamespaceTemplate string `json:"namespaceTemplate,omitempty"`

	// namespaceLabels are labels of each namespace of a workload workspace on the cluster, for example the labels of Pod
	// Security. A label of the workspace's own Namespace never overrides them. Labels of synchub.dev have no effect.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && size(self[key]) <= 63)",message="a key has at most 317 characters, and a value 63"
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`

	// resourceQuota is the spec of a ResourceQuota that the hub keeps in each namespace of a workload workspace.
	// While a cluster refuses it, the condition TenancyNotApplied has the cluster's words.
	// +optional
	ResourceQuota *corev1.ResourceQuotaSpec `json:"resourceQuota,omitempty"`

	// limitRange is the spec of a LimitRange that the hub keeps in each namespace of a workload workspace.
	// +optional
	LimitRange *corev1.LimitRangeSpec `json:"limitRange,omitempty"`

	// clusterScoped lists the cluster-scoped resources that workload workspaces may place on the cluster with
	// namespaces: PerWorkspace. The first workspace has a name. Namespaces need no entry.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ClusterScoped []GroupResource `json:"clusterScoped,omitempty"`

	// identity determines who the cluster sees as the author of the objects of a workload workspace. With Hub, the default,
	// it is the hub. With Workspace the hub impersonates a ServiceAccount for the workspace, in the namespace
	// synchub-tenants of the cluster, so that the cluster's own RBAC, quotas and admission decide what the workspace may do.
	// +optional
	// +kubebuilder:default=Hub
	Identity TenantIdentity `json:"identity,omitempty"`

	// role is the ClusterRole of the cluster that each workload workspace has in each of its namespaces.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	Role string `json:"role,omitempty"`

	// mailboxIdentity determines who the cluster sees as the author of the objects of the mailbox that no placement made. With
	// Hub, the default, it is the hub. With Mailbox the hub impersonates the ServiceAccount mailbox of the namespace
	// synchub-tenants, to which the cluster's administrator binds roles.
	// +optional
	// +kubebuilder:default=Hub
	MailboxIdentity MailboxIdentity `json:"mailboxIdentity,omitempty"`
}

// NamespaceTenancy determines the names of the namespaces of workload workspaces on a cluster.
//
// +kubebuilder:validation:Enum=Shared;PerWorkspace
type NamespaceTenancy string

const (
	// NamespacesShared: a namespace has the same name on the cluster. An empty value stands for it.
	NamespacesShared NamespaceTenancy = "Shared"

	// NamespacesPerWorkspace: each workload workspace has namespaces of its own.
	NamespacesPerWorkspace NamespaceTenancy = "PerWorkspace"
)

// TenantIdentity determines who a cluster sees as the author of the objects of a workload workspace.
//
// +kubebuilder:validation:Enum=Hub;Workspace
type TenantIdentity string

const (
	// TenantIdentityHub: the hub writes as itself. An empty value stands for it.
	TenantIdentityHub TenantIdentity = "Hub"

	// TenantIdentityWorkspace: the hub impersonates a ServiceAccount for each workspace.
	TenantIdentityWorkspace TenantIdentity = "Workspace"
)

// MailboxIdentity determines who a cluster sees as the author of the objects of the mailbox that no placement made.
//
// +kubebuilder:validation:Enum=Hub;Mailbox
type MailboxIdentity string

const (
	// MailboxIdentityHub: the hub writes as itself. An empty value stands for it.
	MailboxIdentityHub MailboxIdentity = "Hub"

	// MailboxIdentityMailbox: the hub impersonates the ServiceAccount for the mailbox.
	MailboxIdentityMailbox MailboxIdentity = "Mailbox"
)

const (
	// TenantsNamespace is the namespace of a cluster that has the ServiceAccounts the hub impersonates.
	TenantsNamespace = "synchub-tenants"

	// LabelWorkspace is on the namespaces of workload workspaces in mailboxes and on clusters with namespaces:
	// PerWorkspace. Its value identifies the workspace's logical cluster.
	LabelWorkspace = "synchub.dev/workspace"

	// AnnotationWorkspacePath is on the same namespaces. Its value is the path of the workspace.
	AnnotationWorkspacePath = "synchub.dev/workspace-path"
)
