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

package transform

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// AsAdopted returns a copy with a mark of an adopted object, which the hub did not create.
func (d *Desired) AsAdopted() *Desired {
	adopted := *d
	adopted.Object = d.Object.DeepCopy()
	adopted.Mark.Adopted = true
	adopted.sealed = adopted.owner.Seal(adopted.Mark)
	_ = unstructured.SetNestedField(adopted.Object.Object, adopted.sealed, "metadata", "annotations", ownership.MarkAnnotation)
	return &adopted
}
