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

package copystates

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/copystates/codec"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

const (
	// statesKey is the key of encoded states in the binaryData of a ConfigMap, and sealKey that of their seal in its data.
	statesKey = "states"
	sealKey   = "seal"
	// copiesLabel is "true" on the ConfigMaps of hubs.
	copiesLabel = "synchub.dev/copies"
	// nameSuffix follows the UID of the SyncTarget in the names of these ConfigMaps.
	nameSuffix = "-copies"
)

// Decode returns the states that a ConfigMap has.
func Decode(sealer *ownership.Sealer, syncTarget types.UID, mailbox string, stored *corev1.ConfigMap) (*codec.Set, error) {
	return codec.Decode(sealer, syncTarget, mailbox, stored.BinaryData[statesKey], stored.Data[sealKey])
}

// nameOf returns the name of the ConfigMap of a SyncTarget, and syncTargetOf is the inverse.
func nameOf(syncTarget types.UID) string { return string(syncTarget) + nameSuffix }

func syncTargetOf(name string) types.UID { return types.UID(strings.TrimSuffix(name, nameSuffix)) }

// newConfigMap returns the ConfigMap with encoded states.
func newConfigMap(syncTarget types.UID, resourceVersion string, content []byte, seal string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(syncTarget), Labels: map[string]string{copiesLabel: "true"}, ResourceVersion: resourceVersion},
		BinaryData: map[string][]byte{statesKey: content}, Data: map[string]string{sealKey: seal},
	}
}
