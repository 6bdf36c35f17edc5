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

package v1alpha1

// APISource selects how mailboxes get an API.
//
// +kubebuilder:validation:XValidation:rule="!has(self.schemaFrom) || self.source != 'Claim'",message="a claimed resource has no schema",fieldPath=".schemaFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.identityHash) || self.source != 'Schema'",message="a resource with its own schema has no foreign identity",fieldPath=".identityHash"
// +kubebuilder:validation:XValidation:rule="!has(self.identityHash) || !has(self.schemaFrom)",message="schemaFrom and identityHash exclude each other",fieldPath=".identityHash"
type APISource struct {
	// source of the API in mailboxes. Claim is for a resource that kcp itself or another export provides. Schema is
	// for a resource that the hub's export provides. Auto selects Claim for a resource that kcp serves itself, and
	// where identityHash is set; otherwise it selects Schema. The field is immutable: objects created under one
	// source are invisible under the other.
	// +optional
	// +kubebuilder:default=Auto
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="immutable"
	Source APISourceType `json:"source,omitempty"`

	// schemaFrom selects where the hub reads the schema. Absent means the hosting cluster.
	// +optional
	SchemaFrom *SchemaFrom `json:"schemaFrom,omitempty"`

	// identityHash of the other export, for a claim on its resource.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	IdentityHash string `json:"identityHash,omitempty"`
}

// APISourceType selects how mailboxes get an API.
//
// +kubebuilder:validation:Enum=Auto;Schema;Claim
type APISourceType string

const (
	// APISourceAuto selects Claim for a resource that kcp serves itself and for a resource of another export,
	// otherwise Schema.
	APISourceAuto APISourceType = "Auto"

	// APISourceSchema exports the API with an APIResourceSchema.
	APISourceSchema APISourceType = "Schema"

	// APISourceClaim claims objects of an API that mailboxes already have.
	APISourceClaim APISourceType = "Claim"
)

// SchemaFrom selects where the hub reads a schema. The hub takes it from a CustomResourceDefinition or, for a built-in kind
// of a cluster, from the cluster's OpenAPI document. Exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.hostingCluster), has(self.syncTarget), has(self.configMap), has(self.builtIn)].exists_one(set, set)",message="exactly one of hostingCluster, syncTarget, configMap and builtIn is required"
type SchemaFrom struct {
	// hostingCluster uses the schema that the hosting cluster serves.
	// +optional
	HostingCluster *HostingClusterSchema `json:"hostingCluster,omitempty"`

	// syncTarget uses the schema that the target of one SyncTarget serves.
	// +optional
	SyncTarget *SyncTargetSchema `json:"syncTarget,omitempty"`

	// configMap uses a CustomResourceDefinition in a ConfigMap.
	// +optional
	ConfigMap *ConfigMapSchema `json:"configMap,omitempty"`

	// builtIn uses the schema that the hub itself has for a kind of Kubernetes. The schema changes with the version of the hub.
	// +optional
	BuiltIn *BuiltInSchema `json:"builtIn,omitempty"`
}

// BuiltInSchema selects a schema of the hub. It has no settings.
type BuiltInSchema struct{}

// HostingClusterSchema selects the hosting cluster. It has no settings.
type HostingClusterSchema struct{}

// SyncTargetSchema names a SyncTarget.
type SyncTargetSchema struct {
	// cluster is the inventory workspace of the SyncTarget: its path, or the name of its logical cluster.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Cluster string `json:"cluster"`

	// name of the SyncTarget.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// ConfigMapSchema names a key of a ConfigMap in the hub's own namespace.
type ConfigMapSchema struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key whose value is the CustomResourceDefinition, in YAML or JSON.
	// +optional
	// +kubebuilder:default=crd.yaml
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}
