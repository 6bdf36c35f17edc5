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

package synctarget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// agentRole is the name of the agent's roles and bindings in the mailbox.
const agentRole = "synchub:agent"

// agentMailbox has clients for one mailbox, with the hub's own rights, which it has as the creator of the workspace.
type agentMailbox struct {
	core   coreclient.CoreV1Interface
	leases coordinationclient.CoordinationV1Interface
	rbac   rbacclient.RbacV1Interface
}

func newAgentMailbox(config *rest.Config) (*agentMailbox, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the mailbox: %w", err)
	}
	core, coreErr := coreclient.NewForConfigAndClient(config, client)
	leases, leasesErr := coordinationclient.NewForConfigAndClient(config, client)
	rbac, rbacErr := rbacclient.NewForConfigAndClient(config, client)
	return &agentMailbox{core, leases, rbac}, errors.Join(coreErr, leasesErr, rbacErr)
}

// getReport returns the report in the agent's Lease; both texts are empty if there is none.
func (m *agentMailbox) getReport(ctx context.Context) (report, seal string, err error) {
	lease, err := m.leases.Leases(assignment.Namespace).Get(requestmetrics.WithClass(ctx, requestmetrics.Background), assignment.Lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot read the agent's Lease: %w", err)
	}
	return lease.Annotations[assignment.ReportAnnotation], lease.Annotations[assignment.SealAnnotation], nil
}

// getCopies returns the states of the copies in the mailbox; nil if nobody has stored any.
func (m *agentMailbox) getCopies(ctx context.Context) (*corev1.ConfigMap, error) {
	found, err := m.core.ConfigMaps(assignment.Namespace).Get(requestmetrics.WithClass(ctx, requestmetrics.Background), assignment.CopiesConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the states of copies that the agent reports: %w", err)
	}
	return found, nil
}

// ensureIdentity makes the agent's ServiceAccount, its roles and the objects that it writes equal to what the rules need. It writes only differences.
func (m *agentMailbox) ensureIdentity(ctx context.Context, rules assignment.Rules) error {
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Background)
	namespace := &corev1.Namespace{ObjectMeta: agentMeta("", assignment.Namespace)}
	if err := ensureObject(ctx, m.core.Namespaces(), namespace, labelIsKept); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: agentMeta(assignment.Namespace, assignment.ServiceAccount)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	clusterRole := &rbacv1.ClusterRole{ObjectMeta: agentMeta("", agentRole), Rules: agentClusterRules(rules)}
	clusterBinding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: agentMeta("", agentRole), Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentRole},
	}
	role := &rbacv1.Role{ObjectMeta: agentMeta(assignment.Namespace, agentRole), Rules: agentNamespaceRules()}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: agentMeta(assignment.Namespace, agentRole), Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: agentRole},
	}
	// The agent may write only these two, and may not make others.
	copies := &corev1.ConfigMap{ObjectMeta: agentMeta(assignment.Namespace, assignment.CopiesConfigMap)}
	lease := &coordinationv1.Lease{ObjectMeta: agentMeta(assignment.Namespace, assignment.Lease)}
	return errors.Join(
		ensureObject(ctx, m.core.ServiceAccounts(account.Namespace), account, labelIsKept),
		ensureObject(ctx, m.rbac.ClusterRoles(), clusterRole, func(found *rbacv1.ClusterRole) bool {
			same := apiequality.Semantic.DeepEqual(found.Rules, clusterRole.Rules) && found.AggregationRule == nil
			found.Rules, found.AggregationRule = clusterRole.Rules, nil
			return same
		}),
		ensureObject(ctx, m.rbac.ClusterRoleBindings(), clusterBinding, func(found *rbacv1.ClusterRoleBinding) bool {
			same := apiequality.Semantic.DeepEqual(found.Subjects, subjects)
			found.Subjects = subjects
			return same
		}),
		ensureObject(ctx, m.rbac.Roles(role.Namespace), role, func(found *rbacv1.Role) bool {
			same := apiequality.Semantic.DeepEqual(found.Rules, role.Rules)
			found.Rules = role.Rules
			return same
		}),
		ensureObject(ctx, m.rbac.RoleBindings(binding.Namespace), binding, func(found *rbacv1.RoleBinding) bool {
			same := apiequality.Semantic.DeepEqual(found.Subjects, subjects)
			found.Subjects = subjects
			return same
		}),
		ensureObject(ctx, m.core.ConfigMaps(copies.Namespace), copies, labelIsKept),
		ensureObject(ctx, m.leases.Leases(lease.Namespace), lease, labelIsKept),
	)
}

// ensureAssignment makes the ConfigMap hold the assignment.
func (m *agentMailbox) ensureAssignment(ctx context.Context, content []byte, seal string) error {
	desired := &corev1.ConfigMap{
		ObjectMeta: agentMeta(assignment.Namespace, assignment.ConfigMap),
		BinaryData: map[string][]byte{assignment.AssignmentKey: content}, Data: map[string]string{assignment.SealKey: seal},
	}
	return ensureObject(requestmetrics.WithClass(ctx, requestmetrics.Background), m.core.ConfigMaps(assignment.Namespace), desired, func(found *corev1.ConfigMap) bool {
		same := apiequality.Semantic.DeepEqual(found.BinaryData, desired.BinaryData) && maps.Equal(found.Data, desired.Data)
		found.BinaryData, found.Data = desired.BinaryData, desired.Data
		return same
	})
}

func agentMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{edgev2alpha1.LabelAgent: "true"}}
}

// typedClient is the part of a typed client that ensureObject uses.
type typedClient[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// labelIsKept is for objects of which only the label counts.
func labelIsKept[T any](T) bool { return true }

// ensureObject creates an object, or updates it unless makeEqual reports that it is as desired. The label of our objects is put back.
func ensureObject[T metav1.Object](ctx context.Context, client typedClient[T], desired T, makeEqual func(found T) (same bool)) error {
	found, err := client.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, desired, metav1.CreateOptions{})
	} else if err == nil {
		same := makeEqual(found)
		if found.GetLabels()[edgev2alpha1.LabelAgent] == "" {
			labels := maps.Clone(found.GetLabels())
			if labels == nil {
				labels = map[string]string{}
			}
			labels[edgev2alpha1.LabelAgent] = "true"
			found.SetLabels(labels)
			same = false
		}
		if !same {
			_, err = client.Update(ctx, found, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make %s for the agent in the mailbox: %w", desired.GetName(), err)
	}
	return nil
}

// Verbs of an agent in its mailbox.
const (
	agentReads   = "get,list,watch"
	agentPatches = agentReads + ",patch"
	agentWrites  = agentPatches + ",create,delete,update"
)

// agentVerbs returns the verbs of an agent for an API of the mailbox. Objects that act inside kcp never come up unless their
// PublishedResource says so, so the agent does not write them: else it could give itself more rights in the mailbox. It patches
// finalizers and statuses, which objects of APIs of kcp itself do not get. resource is nil for an API that is only read for others.
func agentVerbs(api schema.GroupResource, resource *assignment.Resource) string {
	switch {
	case !policy.IsPrivileged(api):
		return agentWrites
	case resource == nil:
		return agentReads
	case resource.Published != nil && resource.Published.Spec.PrivilegedUpsync == synchubv1alpha1.PrivilegedUpsyncTargetGovernsMailbox:
		return agentWrites
	case !resource.API.Native:
		return agentPatches
	default:
		return agentReads
	}
}

// agentClusterRules returns the rights of an agent in the whole mailbox: what is published, and the configs with their status.
func agentClusterRules(rules assignment.Rules) []rbacv1.PolicyRule {
	read := strings.Split(agentReads, ",")
	verbs := map[schema.GroupResource]string{}
	for _, resource := range rules.Watched {
		verbs[resource.GroupResource()] = agentVerbs(resource.GroupResource(), nil)
	}
	for _, resource := range rules.Resources {
		api := resource.API.GroupResource()
		verbs[api] = agentVerbs(api, &resource)
	}
	type class struct{ group, verbs string }
	classes := map[class][]string{}
	for api, verbs := range verbs {
		classes[class{api.Group, verbs}] = append(classes[class{api.Group, verbs}], api.Resource)
	}
	configs := []string{"syncerconfigs", "edgesyncconfigs"}
	result := []rbacv1.PolicyRule{
		{APIGroups: []string{edgev2alpha1.GroupName}, Resources: configs, Verbs: read},
		{APIGroups: []string{edgev2alpha1.GroupName}, Resources: []string{configs[0] + "/status", configs[1] + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"apis.kcp.io"}, Resources: []string{"apibindings"}, Verbs: read},
		{APIGroups: []string{corev1alpha1.SchemeGroupVersion.Group}, Resources: []string{"logicalclusters"}, ResourceNames: []string{corev1alpha1.LogicalClusterName}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	for _, key := range slices.SortedFunc(maps.Keys(classes), func(a, b class) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verbs, b.verbs))
	}) {
		resources := slices.Sorted(slices.Values(classes[key]))
		result = append(result, rbacv1.PolicyRule{APIGroups: []string{key.group}, Resources: resources, Verbs: strings.Split(key.verbs, ",")})
		if key.verbs == agentReads {
			continue
		}
		var statuses []string
		for _, resource := range resources {
			statuses = append(statuses, resource+"/status")
		}
		result = append(result, rbacv1.PolicyRule{APIGroups: []string{key.group}, Resources: statuses, Verbs: []string{"patch", "update"}})
	}
	return result
}

// agentNamespaceRules returns the rights of an agent in the namespace of its own objects.
func agentNamespaceRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{assignment.ConfigMap}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{assignment.CopiesConfigMap}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{assignment.Lease}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{assignment.ServiceAccount}, Verbs: []string{"create"}},
	}
}
