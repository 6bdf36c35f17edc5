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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

const (
	// TunnelNamespace is the default namespace of a tunnel in its cluster.
	TunnelNamespace = "synchub-tunnel"
	// tunnelName is the name of the tunnel's objects in its cluster.
	tunnelName = "synchub-tunnel"
	// componentLabel has the value credentialsComponent on the Secret of the manifest only, so that it can be applied alone.
	componentLabel       = "app.kubernetes.io/component"
	credentialsComponent = "credentials"
	// tunnelTokenKey and tunnelAuthorityKey are the keys of that Secret, which is mounted at tunnelDirectory.
	tunnelTokenKey     = "token"
	tunnelAuthorityKey = "ca.crt"
	tunnelDirectory    = "/etc/synchub"
	credentialsVolume  = "credentials"
)

// clusterName is the name of the tunnel's ClusterRole, and of its Roles outside its own namespace.
func (t *Tunnel) clusterName() string { return "synchub:tunnel:" + t.Namespace }

// Manifest returns the objects for the cluster. Without a credential, the Secret is missing.
func (t *Tunnel) Manifest(syncTarget *edgev2alpha1.SyncTarget, credential *tunnel.Credential) ([]client.Object, error) {
	resources, _, err := SelectResources(t.Requested, nil)
	if err != nil {
		return nil, err
	}
	options := t.RBACOptions
	options.Namespaces = nil
	if len(t.Namespaces) > 0 && t.Namespaces[0] != AllNamespaces {
		options.Namespaces = t.Namespaces
	}
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: tunnelMeta(t.Namespace, tunnelName)}
	roleMeta := func(namespace string) metav1.ObjectMeta { return tunnelMeta(namespace, t.clusterName()) }
	objects := append([]client.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: tunnelMeta("", t.Namespace)}, account,
	}, rolesFor(account, roleMeta, resources, options)...)
	if credential != nil {
		objects = append(objects, t.secret(credential))
	}
	return append(objects, t.deployment(syncTarget)), nil
}

func tunnelLabels() map[string]string {
	return map[string]string{managedByLabel: managerName, "app.kubernetes.io/name": tunnelName}
}

func tunnelMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: tunnelLabels()}
}

// secret returns the Secret for the cluster.
func (t *Tunnel) secret(credential *tunnel.Credential) *corev1.Secret {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: tunnelMeta(t.Namespace, tunnelName)}
	secret.Labels[componentLabel] = credentialsComponent
	secret.Data = map[string][]byte{tunnelTokenKey: []byte(credential.Token)}
	if len(t.CA) > 0 {
		secret.Data[tunnelAuthorityKey] = t.CA
	}
	return secret
}

// deployment returns the Deployment of the tunnel. It meets the restricted Pod security standard.
func (t *Tunnel) deployment(syncTarget *edgev2alpha1.SyncTarget) *appsv1.Deployment {
	args := []string{"--hub=" + t.URL, "--sync-target=" + string(syncTarget.UID), "--token-file=" + tunnelDirectory + "/" + tunnelTokenKey}
	if len(t.CA) > 0 {
		args = append(args, "--hub-certificate-authority="+tunnelDirectory+"/"+tunnelAuthorityKey)
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}}}
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: tunnelMeta(t.Namespace, tunnelName),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": tunnelName}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: tunnelLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: tunnelName,
					SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: tunnelName, Image: t.Image, Args: args,
						Ports:         []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}},
						LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
							Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
						},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: credentialsVolume, MountPath: tunnelDirectory, ReadOnly: true}},
					}},
					Volumes: []corev1.Volume{{Name: credentialsVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: tunnelName}}}},
				},
			},
		},
	}
}
