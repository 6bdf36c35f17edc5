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

package registration

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

const (
	// agentSuffix ends the name of the Secret with the keys in the inventory workspace.
	agentSuffix = "-agent"
	// agentName is the name of the agent's objects in its cluster.
	agentName = "synchub-agent"
	// componentLabel has the value credentialsComponent on the Secret of the manifest only, so that it can be applied alone.
	componentLabel       = "app.kubernetes.io/component"
	credentialsComponent = "credentials"
	// mailboxPollInterval is the interval of the requests for a token while the hub makes the mailbox.
	mailboxPollInterval = 500 * time.Millisecond
	// agentTokenLifetime is that of the Pod's token for its own cluster. A new token means a new connection, so it lasts for a day.
	agentTokenLifetime = 24 * 60 * 60
)

// Agent registers a cluster that an agent keeps in sync.
type Agent struct {
	// Registrar describes the SyncTarget. It needs no access to the target.
	Registrar
	// MailboxClient returns a client with the operator's credentials for a workspace, and Server, CA and ServerName are the kcp that
	// the agent connects to.
	MailboxClient func(workspace string) (client.Client, error)
	Server        string
	CA            []byte
	ServerName    string
	// Namespace is that of the agent in its cluster. Image is the image of synchub.
	Namespace, Image string
}

// Register creates or updates the SyncTarget and the Secret with the keys, waits for the mailbox, and returns the objects to apply to
// the cluster.
func (a *Agent) Register(ctx context.Context) ([]client.Object, error) {
	desired, chosen, err := a.resolveAndConfirm(ctx)
	if err != nil {
		return nil, err
	}
	syncTarget, err := a.Inventory.EnsureSyncTarget(ctx, desired)
	if err != nil {
		return nil, err
	}
	keys, err := a.ensureKeys(ctx, syncTarget)
	if err != nil {
		return nil, err
	}
	if a.Inventory.DryRun {
		return chosen.Manifest(nil, nil)
	}
	if err := a.Inventory.recordAgentGrant(ctx, syncTarget, chosen.Requested.Resources, chosen.Namespaces); err != nil {
		return nil, err
	}
	access, err := a.requestAccess(ctx, syncTarget)
	if err != nil {
		return nil, err
	}
	return chosen.Manifest(access, keys)
}

// ensureKeys returns the keys in the Secret of the SyncTarget, by their fields in the Secret of the manifest. It makes those that are
// not there: without its mark key an agent would not recognise the objects that it has placed, so only the other key may be replaced.
func (a *Agent) ensureKeys(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (map[string][]byte, error) {
	stored, err := a.Inventory.secretData(ctx, syncTarget)
	if err != nil {
		return nil, err
	}
	_, field := secretKeyOf(syncTarget)
	keys := map[string][]byte{edgev2alpha1.AgentKeyField: stored[field], edgev2alpha1.MarkKeyField: stored[edgev2alpha1.MarkKeyField]}
	for name, key := range keys {
		if len(key) == edgev2alpha1.AgentKeyLength {
			continue
		}
		key = make([]byte, edgev2alpha1.AgentKeyLength)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("cannot make a key: %w", err)
		}
		keys[name] = key
	}
	return keys, a.Inventory.ensureSecretData(ctx, syncTarget, map[string][]byte{
		field: keys[edgev2alpha1.AgentKeyField], edgev2alpha1.MarkKeyField: keys[edgev2alpha1.MarkKeyField],
	})
}

// Objects returns the objects that Register would return, without the Secret. It writes nothing.
func (a *Agent) Objects(ctx context.Context) ([]client.Object, error) {
	_, chosen, err := a.resolveAndConfirm(ctx)
	if err != nil {
		return nil, err
	}
	return chosen.Manifest(nil, nil)
}

// resolveAndConfirm returns the desired SyncTarget, and the registration with the rights to grant as the requested ones. It calls
// Confirm if the registration gives more access than before. It writes nothing.
func (a *Agent) resolveAndConfirm(ctx context.Context) (*edgev2alpha1.SyncTarget, *Agent, error) {
	desired, err := a.desiredSyncTarget(ctx)
	if err != nil {
		return nil, nil, err
	}
	questions, err := a.Inventory.checkExistingSecret(ctx, desired)
	if err != nil {
		return nil, nil, err
	}
	before, err := a.Inventory.agentGrants(ctx, desired)
	if err != nil {
		return nil, nil, err
	}
	chosen, added, err := a.resolveAgentGrant(desired, before)
	if err != nil {
		return nil, nil, err
	}
	if added != "" {
		questions = append(questions, "The agent's rights in its cluster would grow by: "+added+".")
	}
	if len(questions) > 0 && a.Confirm != nil {
		err = a.Confirm(ctx, strings.Join(questions, "\n"))
	}
	return desired, chosen, err
}

// resolveAgentGrant returns the registration with the rights to grant as the requested ones. added describes those that the last
// registration did not grant, or is empty. before is nil if no registration is recorded.
func (a *Agent) resolveAgentGrant(desired *edgev2alpha1.SyncTarget, before *Grants) (chosen *Agent, added string, err error) {
	if desired.UID != "" && before == nil && len(a.Requested.Resources) == 0 {
		return nil, "", fmt.Errorf("the SyncTarget %s is there already, and the Secret in its spec.kubeconfigSecretRef does not say which rights its agent has: name all its resources with --resources, and its namespaces with --namespaces if it is limited to some", a.Name)
	}
	var granted []rbac.Resource
	if before != nil {
		granted = before.Resources
		a.restrictAsBefore(desired, before.Namespaces)
	}
	resources, source, err := SelectResources(a.Requested, granted)
	if err != nil {
		return nil, "", err
	}
	options := a.RBACOptions
	options.Namespaces = nil
	if restrictions := desired.Spec.Namespaces; restrictions != nil {
		options.Namespaces = slices.Sorted(slices.Values(restrictions.Only))
	}
	if resources, err = a.filterNamespaced(options.Namespaces, resources); err != nil {
		return nil, "", err
	}
	a.describeGrant(grant{resources, options}, source)
	if before != nil {
		more := before.missing(resources, options)
		added = rbac.DescribeAttributes(more, len(more))
		a.describeRemaining(before.Namespaces, options.Namespaces)
	}
	resolved := *a
	resolved.Requested, resolved.Namespaces = ResourceRequest{Resources: resources}, options.Namespaces
	return &resolved, added, nil
}

// describeRemaining tells the operator in which namespaces Roles of the agent remain, since applying a manifest deletes none.
func (a *Agent) describeRemaining(before, after []string) {
	for _, namespace := range before {
		if !slices.Contains(after, namespace) {
			a.info(fmt.Sprintf("The agent keeps its rights in the namespace %[1]s until you delete them: kubectl delete rolebinding,role --namespace %[1]s %[2]s", namespace, a.clusterName()))
		}
	}
}

// clusterName returns the name of the agent's roles for the objects that it syncs, and of their bindings.
func (a *Agent) clusterName() string { return "synchub:agent:" + a.Namespace }

// requestAccess returns a kubeconfig for the mailbox, with a token of the agent's ServiceAccount. It waits until the hub has made both.
func (a *Agent) requestAccess(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) ([]byte, error) {
	inventory, err := InventoryID(ctx, a.Inventory.Client)
	if err != nil {
		return nil, err
	}
	var token string
	last := errors.New("the hub has not made the mailbox yet")
	err = wait.PollUntilContextCancel(ctx, mailboxPollInterval, true, func(ctx context.Context) (bool, error) {
		current, err := a.Inventory.SyncTarget(ctx, syncTarget.Name)
		if err != nil || current == nil || current.Status.Mailbox == nil {
			return false, err
		}
		workspace := current.Status.Mailbox.Workspace
		// Whoever may write the status could name a workspace of another cluster.
		if !isMailboxOf(workspace, inventory, current.UID) {
			return false, fmt.Errorf("status.mailbox of the SyncTarget %s names the workspace %s, which is not its mailbox", current.Name, workspace)
		}
		mailbox, err := a.MailboxClient(workspace)
		if err != nil {
			return false, err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: edgev2alpha1.AgentNamespace, Name: edgev2alpha1.AgentServiceAccount}}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(a.Lifetime.Seconds()))}}
		err = mailbox.SubResource("token").Create(ctx, account, request)
		switch {
		case apierrors.IsForbidden(err):
			return false, fmt.Errorf("cannot get a token for the agent in its mailbox %s: give yourself rights there, such as cluster-admin, by spec.mailboxAccess of the SyncTarget, and try again: %w", workspace, err)
		case err != nil:
			last = err
		}
		token = request.Status.Token
		return token != "", nil
	})
	if ctx.Err() != nil && err != nil {
		return nil, fmt.Errorf("the SyncTarget %s is registered, but its mailbox is not ready; repeat the command for the manifest: %w", syncTarget.Name, last)
	}
	if err != nil {
		return nil, err
	}
	return a.kubeconfig(token)
}

// isMailboxOf reports whether a workspace has the name that the hub gives the mailbox of a SyncTarget.
func isMailboxOf(workspace, inventory string, syncTarget types.UID) bool {
	return strings.HasSuffix(workspace, ":"+inventory+"-mb-"+string(syncTarget))
}

// kubeconfig returns a kubeconfig for the workspace that has issued a token.
func (a *Agent) kubeconfig(token string) ([]byte, error) {
	cluster, err := issuingCluster(token)
	if err != nil {
		return nil, err
	}
	const name = "mailbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: a.Server + "/clusters/" + cluster, TLSServerName: a.ServerName, CertificateAuthorityData: a.CA}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	written, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	if _, err := kubeconfig.Parse(written); err != nil {
		return nil, fmt.Errorf("the agent could not use the kcp of the current context: %w", err)
	}
	return written, nil
}

// issuingCluster returns the logical cluster in which kcp has issued a token, which the token names.
func issuingCluster(token string) (string, error) {
	var claims struct {
		Kubernetes struct {
			ClusterName string `json:"clusterName"`
		} `json:"kubernetes.io"`
	}
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(payload, &claims) == nil && claims.Kubernetes.ClusterName != "" {
			return claims.Kubernetes.ClusterName, nil
		}
	}
	return "", errors.New("the token for the agent does not name the workspace that has issued it")
}

// Manifest returns the objects to apply to the agent's cluster. Without access, it leaves out the Secret: whoever applied one without
// data would take the agent's credentials away.
func (a *Agent) Manifest(access []byte, keys map[string][]byte) ([]client.Object, error) {
	resources, _, err := SelectResources(a.Requested, nil)
	if err != nil {
		return nil, err
	}
	options := a.RBACOptions
	options.Namespaces = nil
	if len(a.Namespaces) > 0 && a.Namespaces[0] != AllNamespaces {
		options.Namespaces = a.Namespaces
	}
	labels := map[string]string{managedByLabel: managerName, "app.kubernetes.io/name": agentName}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: agentName}}
	clusterName := a.clusterName()
	bindRole := func(namespace, name string, rules []rbacv1.PolicyRule) []client.Object {
		return []client.Object{
			&rbacv1.Role{TypeMeta: rbacTypeMeta("Role"), ObjectMeta: named(namespace, name), Rules: rules},
			&rbacv1.RoleBinding{
				TypeMeta: rbacTypeMeta("RoleBinding"), ObjectMeta: named(namespace, name), Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			},
		}
	}
	objects := []client.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: named("", a.Namespace)},
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: named(a.Namespace, agentName)},
		&rbacv1.ClusterRole{TypeMeta: rbacTypeMeta("ClusterRole"), ObjectMeta: named("", clusterName), Rules: rbac.ClusterRoleRules(resources, options)},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacTypeMeta("ClusterRoleBinding"), ObjectMeta: named("", clusterName), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterName},
		},
	}
	objects = append(objects, bindRole(a.Namespace, agentName, agentOwnRules())...)
	for _, namespace := range options.Namespaces {
		objects = append(objects, bindRole(namespace, clusterName, rbac.RoleRules(resources, options))...)
	}
	if access != nil {
		secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: named(a.Namespace, agentName)}
		secret.Labels = mergeMaps(labels, map[string]string{componentLabel: credentialsComponent})
		secret.Data = map[string][]byte{"kubeconfig": access}
		maps.Copy(secret.Data, keys)
		objects = append(objects, secret)
	}
	return append(objects, a.deployment(labels)), nil
}

// agentOwnRules returns the rights of an agent in its own namespace: its Secret, its Lease with the events about it, and its records.
func agentOwnRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{agentName}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "delete", "get", "list", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"synchub"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func healthProbe(path string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}}}
}

// deployment returns the Deployment of the agent. It meets the restricted Pod security standard.
func (a *Agent) deployment(labels map[string]string) *appsv1.Deployment {
	selector := map[string]string{"app.kubernetes.io/name": agentName}
	const tokenVolume = "token"
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: agentName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: agentName,
					// The volume below has a token that lasts longer than that of the default one.
					AutomountServiceAccountToken: new(false),
					SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name:           agentName,
						Image:          a.Image,
						Args:           []string{"agent", "--namespace=" + a.Namespace, "--secret=" + agentName},
						Ports:          []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}},
						LivenessProbe:  healthProbe("/healthz"),
						ReadinessProbe: healthProbe("/readyz"),
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
						}},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: tokenVolume, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
					}},
					Volumes: []corev1.Volume{{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(agentTokenLifetime))}},
						{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
					}}}}},
				},
			},
		},
	}
}
