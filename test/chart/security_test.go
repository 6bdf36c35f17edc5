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

package chart

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The Job that waits for the definition does not run as the hub, which may read Secrets.
func TestTheWaitingJobHasNoRights(t *testing.T) {
	rendered := objects(t)
	var job batchv1.Job
	decode(t, rendered["Job/synchub-wait"], &job)
	account := rendered["ServiceAccount/"+job.Spec.Template.Spec.ServiceAccountName]
	if account == nil || account.GetName() == "synchub" {
		t.Fatalf("it runs as %q", job.Spec.Template.Spec.ServiceAccountName)
	}
	// Helm creates hooks by their weight, and deletes these when all have succeeded.
	if got, want := account.GetAnnotations(), map[string]string{
		"helm.sh/hook": "post-install,post-upgrade", "helm.sh/hook-weight": "-2", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
	}; !maps.Equal(got, want) || job.Annotations["helm.sh/hook-weight"] != "-1" {
		t.Errorf("the account has the annotations %v, the Job has %v", got, job.Annotations)
	}
	for key, object := range rendered {
		if subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects"); strings.Contains(fmt.Sprint(subjects), "name:"+account.GetName()+" ") {
			t.Errorf("%s gives it rights", key)
		}
	}
	decode(t, objects(t, "--set", "serviceAccount.create=false,serviceAccount.name=theirs")["Job/synchub-wait"], &job)
	if got := job.Spec.Template.Spec.ServiceAccountName; got != "theirs" {
		t.Errorf("where the chart creates no accounts it runs as %q", got)
	}
}

// All Pods run as the Pod security standard "restricted" asks for, and no container can write into its root filesystem.
func TestSecurityContexts(t *testing.T) {
	seccomp, nobody := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, new(int64(65532))
	hubPod := corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: nobody, RunAsGroup: nobody, FSGroup: nobody, SeccompProfile: seccomp}
	hubContainer := corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), SeccompProfile: seccomp,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	var hub appsv1.Deployment
	var wait batchv1.Job
	rendered := objects(t)
	decode(t, rendered["Deployment/synchub"], &hub)
	decode(t, rendered["Job/synchub-wait"], &wait)
	for name, test := range map[string]struct {
		pod           corev1.PodSpec
		wantPod       corev1.PodSecurityContext
		wantContainer corev1.SecurityContext
	}{
		"the hub": {hub.Spec.Template.Spec, hubPod, hubContainer},
		"the Job": {wait.Spec.Template.Spec, hubPod, hubContainer},
	} {
		if !equality.Semantic.DeepEqual(test.pod.SecurityContext, &test.wantPod) {
			t.Errorf("%s: the Pod has %+v", name, test.pod.SecurityContext)
		}
		for _, container := range append(test.pod.InitContainers, test.pod.Containers...) {
			if !equality.Semantic.DeepEqual(container.SecurityContext, &test.wantContainer) {
				t.Errorf("%s: the container %s has %+v", name, container.Name, container.SecurityContext)
			}
		}
	}
}

// A kubeconfig must not reach the ports of the hub's own Pod.
func TestLoopbackIsDenied(t *testing.T) {
	rendered, err := template(t, "--set", required)
	if err != nil {
		t.Fatal(err)
	}
	if want := "--denied-networks=127.0.0.0/8,::1/128"; !strings.Contains(rendered, want) {
		t.Errorf("nothing was rendered with %q", want)
	}
}
