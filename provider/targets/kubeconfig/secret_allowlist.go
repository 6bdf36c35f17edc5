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

package kubeconfig

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Commas separate the entries of the annotation. In each entry, a UID may follow the name.
const (
	entrySeparator = ","
	uidSeparator   = "/"
)

// parseEntries returns the entries of a Secret's annotation.
func parseEntries(secret metav1.Object) []string {
	var entries []string
	for entry := range strings.SplitSeq(secret.GetAnnotations()[edgev2alpha1.AnnotationAllowedSyncTargets], entrySeparator) {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// formatEntry returns the entry that allows one SyncTarget; without a UID, every SyncTarget of that name.
func formatEntry(name string, uid types.UID) string {
	if uid == "" {
		return name
	}
	return name + uidSeparator + string(uid)
}

// isEntryFor reports whether an entry is for SyncTargets of a name.
func isEntryFor(entry, name string) bool {
	named, _, _ := strings.Cut(entry, uidSeparator)
	return named == name
}

// Allows reports whether a Secret allows a SyncTarget of its workspace to use it, by UID or by name alone.
func Allows(secret metav1.Object, name string, uid types.UID) bool {
	return slices.ContainsFunc(parseEntries(secret), func(one string) bool {
		return one == name || uid != "" && one == formatEntry(name, uid)
	})
}

// HasEntryFor reports whether a Secret allows, or once allowed, a SyncTarget of this name.
func HasEntryFor(secret metav1.Object, name string) bool {
	return slices.ContainsFunc(parseEntries(secret), func(one string) bool { return isEntryFor(one, name) })
}

// HasEntriesForOthers reports whether a Secret allows SyncTargets of other names.
func HasEntriesForOthers(secret metav1.Object, name string) bool {
	return slices.ContainsFunc(parseEntries(secret), func(one string) bool { return !isEntryFor(one, name) })
}

// Allow adds an entry for a SyncTarget, unless the Secret allows it already, such as by its name alone. Allow removes the
// entries of deleted SyncTargets of the same name, and keeps all other entries.
func Allow(secret metav1.Object, name string, uid types.UID) {
	if Allows(secret, name, uid) {
		return
	}
	others := slices.DeleteFunc(parseEntries(secret), func(one string) bool { return isEntryFor(one, name) })
	annotations := secret.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[edgev2alpha1.AnnotationAllowedSyncTargets] = strings.Join(append(others, formatEntry(name, uid)), entrySeparator)
	secret.SetAnnotations(annotations)
}

// AllowCommand returns the command that makes a Secret allow a SyncTarget. It does not name other entries, because all users who may
// read SyncTargets see the command.
func AllowCommand(secret metav1.Object, name string, uid types.UID) string {
	annotated := parseEntries(secret)
	value, overwrite, explained := formatEntry(name, uid), "", ""
	if len(annotated) > 0 {
		overwrite = "--overwrite "
	}
	if HasEntriesForOthers(secret, name) {
		value, explained = "EXISTING"+entrySeparator+value, ", with the existing entries of the annotation in place of EXISTING"
	}
	return fmt.Sprintf("`kubectl annotate secret %s --namespace %s %s%s=%s`%s",
		secret.GetName(), secret.GetNamespace(), overwrite, edgev2alpha1.AnnotationAllowedSyncTargets, value, explained)
}
