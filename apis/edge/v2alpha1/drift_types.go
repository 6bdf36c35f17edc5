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

// DriftPolicy determines what the hub does when another client has changed a field of a copy that the hub set. Repair sets the
// field again. Report reports the field, and writes nothing.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

const (
	// DriftRepair undoes the changes of other clients.
	DriftRepair DriftPolicy = "Repair"

	// DriftReport reports the changes of other clients, and writes nothing.
	DriftReport DriftPolicy = "Report"
)

const (
	// AnnotationDrift on an object that the hub downsyncs is the object's [DriftPolicy]. It takes precedence over the drift of
	// SyncerConfigs and of the PublishedResource.
	AnnotationDrift = "synchub.dev/drift"

	// AnnotationIgnoreFields on an object that the hub downsyncs lists fields that the hub leaves to the target, as ignoreFields
	// of the PublishedResource does. Commas separate the paths.
	AnnotationIgnoreFields = "synchub.dev/ignore-fields"
)

const (
	// MaxIgnoreFields is the maximum number of paths in ignoreFields of an entry, and in AnnotationIgnoreFields.
	MaxIgnoreFields = 16

	// MaxDifferences is the maximum length of differences of an object.
	MaxDifferences = 10
)

// IgnoredPath selects fields of an object, as a path in ignoreFields of a PublishedResource does. It cannot select apiVersion,
// kind or metadata, except for metadata.labels and metadata.annotations.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*|\[\*\]|\[[0-9]+\]|\['[^']+'\]|\[\?\(@\.[A-Za-z_][-\w]*==("[^"]*"|'[^']*')\)\])*$`
type IgnoredPath string

// SyncSettings are how the hub syncs the objects of an entry. Where several entries select an object, Report takes precedence
// over Repair, and the fields of all entries are ignored.
type SyncSettings struct {
	// drift determines what the hub does when another client has changed a field of a copy that the hub set. Repair sets
	// the field again. Report reports the field, and writes nothing. Absent means drift of the PublishedResource. The
	// annotation synchub.dev/drift of an object takes precedence.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// ignoreFields are paths of fields that the hub leaves to the target, beside ignoreFields of the PublishedResource. The
	// hub sets them when it creates an object. It then neither applies nor corrects them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	IgnoreFields []IgnoredPath `json:"ignoreFields,omitempty"`
}

// FieldDifference is a field that has another value on the cluster than the hub would set. The texts are cut.
type FieldDifference struct {
	// path of the field, for example .spec.replicas.
	// +required
	Path string `json:"path"`

	// managers are the field managers of the field on the cluster. They are absent if the cluster does not have the field.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`

	// desired is the value that the hub would set, as JSON. It is absent for Secrets, and in the status of a SyncTarget.
	// +optional
	Desired string `json:"desired,omitempty"`

	// observed is the value on the cluster, as JSON. It is absent for Secrets, in the status of a SyncTarget, and if the cluster does
	// not have the field.
	// +optional
	Observed string `json:"observed,omitempty"`
}
