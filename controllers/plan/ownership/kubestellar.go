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

package ownership

// The annotations of KubeStellar's syncer.
const (
	// OverwriteAnnotation with the value "false" on a mailbox object means that the object is created on the target and then not
	// changed.
	OverwriteAnnotation = "edge.kubestellar.io/downsync-overwrite"
	// KubeStellarDownsynced is the annotation of KubeStellar's syncer on target objects (see [IsFromKubeStellar]).
	KubeStellarDownsynced = "edge.kubestellar.io/downsynced"
	// KubeStellarUpsynced is the annotation of KubeStellar's syncer on mailbox objects (see [IsFromKubeStellar]).
	KubeStellarUpsynced = "edge.kubestellar.io/upsynced"
)

// IsFromKubeStellar reports whether KubeStellar's syncer wrote the object: the annotation, [KubeStellarDownsynced] or
// [KubeStellarUpsynced], names this very object. If it names another one, a controller copied it.
func IsFromKubeStellar(annotations map[string]string, annotation string, self Self) bool {
	return annotations[annotation] == self.Kind+"/"+self.Namespace+"/"+self.Name
}
