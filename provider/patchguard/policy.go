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

package patchguard

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name is the name of the policy and of its binding.
const Name = "synchub-strategic-merge-patches"

// advice is what to do instead of a refused update, by the field manager of a client that sends strategic merge patches.
// An update by server-side apply under the same field manager is not refused.
var advice = []struct{ manager, text string }{
	{"kubectl-client-side-apply", "use kubectl apply --server-side"},
	{"kubectl", "use server-side apply"},
	{"kubectl-set", "use: kubectl get KIND NAME -o yaml | kubectl set ... --local -f - -o yaml | kubectl replace -f -"},
	{"kubectl-edit", "use: kubectl get KIND NAME -o yaml > FILE, edit it, kubectl replace -f FILE"},
	{"kubectl-rollout", "use kubectl patch --type=json"},
	{kubectlPatch, "use kubectl patch --type=json; if this is a JSON or merge patch that is meant to remove them, add --field-manager=remover"},
	{"helm", "use Helm 4 with server-side apply, or: helm template ... | kubectl apply --server-side -f -"},
	{"helm-controller", "use server-side apply"},
	{"argocd-controller", "use the sync option ServerSideApply=true"},
}

// kubectlPatch is the field manager of `kubectl patch`, for each type of patch.
const kubectlPatch = "kubectl-patch"

// Policy returns the policy. It looks only at updates of kinds with lists that strategic merge patches merge.
//
// Admission does not show the type of a patch. The policy recognizes a strategic merge patch by the field manager of its
// client, and by a loss: the patch names an item with the changed fields alone. `kubectl patch` also sends JSON and merge
// patches under its field manager. There the policy treats the loss of a single item or field, with no other change of the
// list, as intended.
func Policy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionregistrationv1.Equivalent),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					updates("", "pods", "podtemplates", "replicationcontrollers", "services"),
					updates("apps", "daemonsets", "deployments", "replicasets", "statefulsets"),
					updates("batch", "cronjobs", "jobs"),
				},
			},
			Variables: []admissionregistrationv1.Variable{
				{Name: "manager", Expression: "has(request.options.fieldManager) ? request.options.fieldManager : ''"},
				{Name: "isStrategic", Expression: fmt.Sprintf("variables.manager in [%s] && !(%s)", quotedManagers(), isServerSideApply)},
				{Name: "mayRemove", Expression: "variables.manager == '" + kubectlPatch + "'"},
				{Name: "lists", Expression: fmt.Sprintf("request.kind.kind == 'Service' ? %s : %s", serviceLists.cel(), podLists.cel())},
				{Name: "nested", Expression: containerLists.cel()},
				{Name: "before", Expression: holder("oldObject")},
				{Name: "after", Expression: holder("object")},
				{Name: "lost", Expression: lostLists()},
				{Name: "advice", Expression: adviceExpression()},
			},
			Validations: []admissionregistrationv1.Validation{
				{
					Expression:        "!variables.isStrategic || variables.lost.size() == 0",
					Reason:            new(metav1.StatusReasonInvalid),
					Message:           "kcp would lose fields or items of lists",
					MessageExpression: "'nothing was changed, because kcp would lose fields or items of ' + variables.lost.join(', ') + ', as it replaces lists in strategic merge patches: ' + variables.advice",
				},
				{
					Expression:        "!(" + hasDirective + ")",
					Reason:            new(metav1.StatusReasonInvalid),
					Message:           "nothing was changed, because kcp cannot delete or order items of lists in strategic merge patches",
					MessageExpression: "'nothing was changed, because kcp cannot delete or order items of lists in strategic merge patches: ' + variables.advice",
				},
				{
					// An API server of Kubernetes requires the image. Only a patch that kcp did not merge takes it away.
					Expression: "!" + losesImage,
					Reason:     new(metav1.StatusReasonInvalid),
					Message:    "nothing was changed, because a container would lose its image: kcp replaces lists in strategic merge patches; use server-side apply, a JSON patch or an update",
				},
			},
		},
	}
}

// Binding returns the binding of the policy.
func Binding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

func updates(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: new(admissionregistrationv1.AllScopes)},
	}}
}

func quotedManagers() string {
	var managers []string
	for _, known := range advice {
		managers = append(managers, "'"+known.manager+"'")
	}
	return strings.Join(managers, ", ")
}

func adviceExpression() string {
	expression := "'use server-side apply, a JSON patch or an update'"
	for _, known := range advice {
		expression = fmt.Sprintf("variables.manager == '%s' ? '%s' : %s", known.manager, known.text, expression)
	}
	return expression
}
