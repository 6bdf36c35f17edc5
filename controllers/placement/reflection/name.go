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

package reflection

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// hashLength is the number of characters of a hash in a shortened text, 5 bits each.
const hashLength = 12

var hashEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// Name returns the name of a reflection: the name of the object, a dot and the name of the SyncTarget. A longer name than an object can have
// is shortened, and ends in a hash.
func Name(object, syncTarget string) string {
	return shorten(object+"."+syncTarget, validation.DNS1123SubdomainMaxLength)
}

// shorten returns a text of at most limit characters. Different texts have different results, up to collisions of their hashes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	hash := strings.ToLower(hashEncoding.EncodeToString(sum[:]))[:hashLength]
	return strings.TrimRight(text[:limit-hashLength-1], ".-_") + "-" + hash
}

// Origin is where a reflection comes from.
type Origin struct {
	SyncTarget string
	// Object is the name on the cluster.
	Object types.NamespacedName
}

// Labels returns the labels that a reflection in a namespace has beside the labels of its origin.
func (o Origin) Labels(namespace string) map[string]string {
	labels := map[string]string{edgev2alpha1.LabelSyncTarget: labelValue(o.SyncTarget), edgev2alpha1.LabelOriginName: labelValue(o.Object.Name)}
	if o.Object.Namespace != namespace {
		labels[edgev2alpha1.LabelOriginNamespace] = labelValue(o.Object.Namespace)
	}
	return labels
}

// labelValue returns a text as the value of a label. Names of some kinds have characters that labels do not allow.
func labelValue(text string) string {
	value := shorten(text, validation.LabelValueMaxLength)
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}
