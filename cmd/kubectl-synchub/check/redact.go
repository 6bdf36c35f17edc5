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

package check

import (
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// hidden replaces a value that a report must not have.
	hidden = "(hidden)"
	// hubContainer is the name of the hub's container in the Pods of the chart.
	hubContainer = "synchub"
)

// hiddenFields are fields with values of users' objects, by the field around them: the values of reported drift, the result of
// an aggregation, and the fixed values of a mutation.
var hiddenFields = map[string][]string{
	"differences": {"desired", "observed"},
	"status":      {"aggregation"},
	"set":         {"value"},
}

// shownAnnotations are the domains of annotations whose values a report has. All other annotations may have any content.
var shownAnnotations = []string{"synchub.dev", "kubestellar.io", "kcp.io"}

// redactedObject returns the fields of an object that a report needs, without values of users' objects and without credentials.
func redactedObject(object client.Object) (map[string]any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		object.Spec, object.Status = shownPodSpec(&object.Spec), shownPodStatus(&object.Status)
	case *appsv1.Deployment:
		object.Spec.Template.Spec = shownPodSpec(&object.Spec.Template.Spec)
	}
	return redacted(object)
}

// redacted returns the fields of a struct. It hides the values of users' objects, and masks credentials.
func redacted(of any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil, err
	}
	redactFields("", fields)
	return fields, nil
}

// redactFields redacts the values of a field in place.
func redactFields(name string, fields map[string]any) {
	delete(fields, "managedFields")
	for key, value := range fields {
		switch {
		case slices.Contains(hiddenFields[name], key):
			fields[key] = hidden
		case key == "annotations":
			hideAnnotations(value)
			fallthrough
		default:
			fields[key] = redactValue(key, value)
		}
	}
}

// redactValue redacts a value of a field. The items of a list are values of the field too.
func redactValue(name string, value any) any {
	switch value := value.(type) {
	case string:
		return redactText(value)
	case map[string]any:
		redactFields(name, value)
	case []any:
		for i := range value {
			value[i] = redactValue(name, value[i])
		}
	}
	return value
}

// hideAnnotations hides the values of annotations that may have any content. What kubectl applied last is such a value.
func hideAnnotations(annotations any) {
	values, ok := annotations.(map[string]any)
	if !ok {
		return
	}
	for key := range values {
		domain, _, _ := strings.Cut(key, "/")
		if !slices.ContainsFunc(shownAnnotations, func(shown string) bool { return domain == shown || strings.HasSuffix(domain, "."+shown) }) {
			values[key] = hidden
		}
	}
}

// rejectedValue matches the value that a server quotes when it refuses an object. Its second group matches the value: a text in
// quotes, also within a JSON log, a structure, or one word. If the end of the value is not certain, the group matches the rest.
var rejectedValue = regexp.MustCompile(`((?:Invalid|Unsupported|Duplicate) value: |Not found: )` +
	`("(?:[^"\\]|\\.)*"?|\\"[^"\\]*\\"|\\".*|[A-Za-z0-9_.*&]*[{\[(].*|[^\s:,]+)`)

// redactText hides the values of objects in a message, and masks credentials.
func redactText(text string) string {
	return redact.Lines(rejectedValue.ReplaceAllString(text, "${1}"+hidden))
}

// shownPodSpec returns the fields of a Pod's spec that a report needs.
func shownPodSpec(spec *corev1.PodSpec) corev1.PodSpec {
	shown := corev1.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, PriorityClassName: spec.PriorityClassName,
		ServiceAccountName: spec.ServiceAccountName, RestartPolicy: spec.RestartPolicy,
		RuntimeClassName: spec.RuntimeClassName, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
	}
	for i := range spec.InitContainers {
		shown.InitContainers = append(shown.InitContainers, otherContainer(&spec.InitContainers[i]))
	}
	for i := range spec.Containers {
		container := &spec.Containers[i]
		if container.Name != hubContainer {
			shown.Containers = append(shown.Containers, otherContainer(container))
			continue
		}
		hub := otherContainer(container)
		hub.Args, hub.Env, hub.EnvFrom, hub.VolumeMounts = container.Args, slices.Clone(container.Env), container.EnvFrom, container.VolumeMounts
		for j := range hub.Env {
			if hub.Env[j].Value != "" {
				hub.Env[j].Value = hidden
			}
		}
		shown.Containers = append(shown.Containers, hub)
	}
	for _, container := range spec.EphemeralContainers {
		shown.EphemeralContainers = append(shown.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: container.Name, Image: container.Image},
		})
	}
	return shown
}

// otherContainer returns the fields that a report needs of each container. Commands, arguments, variables and probes may have any content
// if the chart does not set them.
func otherContainer(container *corev1.Container) corev1.Container {
	return corev1.Container{Name: container.Name, Image: container.Image, Resources: container.Resources, RestartPolicy: container.RestartPolicy}
}

// shownPodStatus returns the fields of a Pod's status that a report needs.
func shownPodStatus(status *corev1.PodStatus) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, Conditions: status.Conditions, PodIP: status.PodIP, StartTime: status.StartTime, QOSClass: status.QOSClass,
		InitContainerStatuses: shownStatuses(status.InitContainerStatuses), ContainerStatuses: shownStatuses(status.ContainerStatuses),
		EphemeralContainerStatuses: shownStatuses(status.EphemeralContainerStatuses),
	}
}

// shownStatuses returns the statuses of containers, without the messages of other containers than the hub's: a container writes the
// message of its end itself.
func shownStatuses(statuses []corev1.ContainerStatus) (shown []corev1.ContainerStatus) {
	for _, status := range statuses {
		if status.Name != hubContainer {
			status.State, status.LastTerminationState = withoutMessage(status.State), withoutMessage(status.LastTerminationState)
		}
		shown = append(shown, corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, ImageID: status.ImageID, Ready: status.Ready, Started: status.Started, RestartCount: status.RestartCount,
			State: status.State, LastTerminationState: status.LastTerminationState,
		})
	}
	return shown
}

func withoutMessage(state corev1.ContainerState) corev1.ContainerState {
	state = *state.DeepCopy()
	if state.Waiting != nil {
		state.Waiting.Message = ""
	}
	if state.Terminated != nil {
		state.Terminated.Message = ""
	}
	return state
}
