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

package mailbox

import (
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
)

// separator is between the logical cluster and the UID of the SyncTarget in the name of a mailbox, as in KubeStellar.
const separator = "-mb-"

// Name returns the name of a SyncTarget's mailbox workspace.
func Name(inventory logicalcluster.Name, syncTarget types.UID) string {
	return inventory.String() + separator + string(syncTarget)
}

// ParseName returns the parts of the name of a mailbox workspace; ok is false for other workspaces.
func ParseName(name string) (inventory logicalcluster.Name, syncTarget types.UID, ok bool) {
	before, after, found := strings.Cut(name, separator)
	if !found || before == "" || after == "" || strings.Contains(after, separator) {
		return "", "", false
	}
	return logicalcluster.Name(before), types.UID(after), true
}
