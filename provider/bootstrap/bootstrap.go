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

package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// workspaceTimeout is how long a new provider workspace may take to become ready.
const workspaceTimeout = 3 * time.Minute

// retryBackoff is for transient errors, which usually last less than a second. It retries for ten seconds.
var retryBackoff = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 10}

// Options configure [Run].
type Options struct {
	// Config returns a client config for a workspace, as an administrator of the provider workspace.
	Config func(workspace string) *rest.Config
	// Workspace is the path of the provider workspace. Run creates the workspace if the user may do so in its parent.
	Workspace string
	// HubUser is the hub's kcp user.
	HubUser string
	// InventoryGroups are the groups that may bind the inventory export.
	InventoryGroups []string
	// WorkloadGroups are the groups that may bind the workload export.
	WorkloadGroups []string
	// DryRun changes nothing: the server checks each write, and stores none.
	DryRun bool
	// Report is called for each object with the result: created, updated or unchanged.
	Report func(object, result string)
	// Manifest, if set, is called for each object as Run leaves it. Secrets have no data.
	Manifest func(client.Object)
}

// Scheme returns a scheme with all kinds that this package reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, apisv1alpha1.AddToScheme, apisv1alpha2.AddToScheme, corev1alpha1.AddToScheme, tenancyv1alpha1.AddToScheme,
	} {
		// Registration fails only if two Go types claim one kind.
		_ = add(scheme)
	}
	return scheme
}

// Run prepares the provider workspace.
func Run(ctx context.Context, options Options) error {
	exists, err := ensureWorkspace(ctx, options)
	if err != nil {
		return err
	}
	setup := &bootstrapper{Options: options, scheme: Scheme(), isMissing: !exists}
	if exists {
		if setup.client, err = options.newClient(options.Workspace); err != nil {
			return describeError(err, "reach", "the workspace", options.Workspace)
		}
	}
	for _, step := range []func(context.Context) error{
		setup.ensurePatchGuard,
		setup.ensureSchemas, setup.ensureInventoryExport, setup.ensureMailboxExport, setup.ensureWorkloadExport, setup.ensureWorkspaceType, setup.ensureHashKey, setup.ensureLedgerNamespace, setup.ensureHubRBAC, setup.ensureInventoryRBAC, setup.ensureWorkloadRBAC,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newClient returns a client for a workspace. In a dry run the server stores nothing.
func (o *Options) newClient(workspace string) (client.Client, error) {
	made, err := client.New(o.Config(workspace), client.Options{Scheme: Scheme()})
	if err == nil && o.DryRun {
		made = client.NewDryRunClient(made)
	}
	return made, err
}

// ensureWorkspace creates the provider workspace and waits until it is ready. exists is false in a dry run that would create it.
func ensureWorkspace(ctx context.Context, options Options) (exists bool, err error) {
	separator := strings.LastIndex(options.Workspace, ":")
	if separator < 0 {
		return true, nil // a root workspace is there or not
	}
	parent, name := options.Workspace[:separator], options.Workspace[separator+1:]
	parentClient, err := options.newClient(parent)
	if err != nil {
		return false, describeError(err, "reach", "the workspace", parent)
	}
	var workspace tenancyv1alpha1.Workspace
	err = parentClient.Get(ctx, types.NamespacedName{Name: name}, &workspace)
	switch {
	case apierrors.IsForbidden(err):
		return true, nil // an administrator of the provider workspace alone sees nothing of its parent
	case apierrors.IsNotFound(err):
		workspace = tenancyv1alpha1.Workspace{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       tenancyv1alpha1.WorkspaceSpec{Type: &universalType},
		}
		if err := parentClient.Create(ctx, &workspace); err != nil {
			return false, describeError(err, "create", "the workspace", options.Workspace)
		}
		options.Report("Workspace "+options.Workspace, string(controllerutil.OperationResultCreated))
		if options.DryRun {
			return false, nil
		}
	case err != nil:
		return false, describeError(err, "get", "the workspace", options.Workspace)
	default:
		options.Report("Workspace "+options.Workspace, string(controllerutil.OperationResultNone))
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, workspaceTimeout, true, func(ctx context.Context) (bool, error) {
		err := parentClient.Get(ctx, types.NamespacedName{Name: name}, &workspace)
		return workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseReady, err
	})
	if err != nil {
		return false, fmt.Errorf("the workspace %s does not become ready: it is %s: %w", options.Workspace, workspace.Status.Phase, err)
	}
	return true, nil
}

// Resources that exports claim before anything is published.
var (
	secrets         = schema.GroupResource{Resource: "secrets"}
	events          = schema.GroupResource{Resource: "events"}
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	logicalClusters = schema.GroupResource{Group: corev1alpha1.SchemeGroupVersion.Group, Resource: "logicalclusters"}
)

type bootstrapper struct {
	Options
	scheme *runtime.Scheme
	client client.Client
	// isMissing is true in a dry run that would create the workspace. Requests to the workspace would then fail.
	isMissing bool
}

// createOrUpdate creates the object, or updates it if mutate changes it. It retries transient errors.
func createOrUpdate[T client.Object](ctx context.Context, s *bootstrapper, kind string, object T, mutate func(T)) error {
	result, current := controllerutil.OperationResultCreated, object.DeepCopyObject().(T)
	if s.isMissing {
		mutate(current)
		return s.report(kind, current, result)
	}
	err := retryTransient(ctx, func(ctx context.Context) (err error) {
		current = object.DeepCopyObject().(T)
		result, err = controllerutil.CreateOrUpdate(ctx, s.client, current, func() error { mutate(current); return nil })
		if s.DryRun && (isExportNotVisibleYet(err) || apierrors.IsNotFound(err)) {
			// The object needs another one, which a dry run has not created.
			result, err = controllerutil.OperationResultCreated, nil
		}
		return err
	})
	if err != nil {
		return describeError(err, "create or update", kind+" "+object.GetName()+" in", s.Workspace)
	}
	return s.report(kind, current, result)
}

// report reports the result for an object.
func (s *bootstrapper) report(kind string, object client.Object, result controllerutil.OperationResult) error {
	s.Report(kind+" "+object.GetName(), string(result))
	if s.Manifest == nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return err
	}
	shown := object.DeepCopyObject().(client.Object)
	if secret, ok := shown.(*corev1.Secret); ok {
		secret.Data = nil
	}
	shown.GetObjectKind().SetGroupVersionKind(gvk)
	s.Manifest(shown)
	return nil
}

// retryTransient calls do until it succeeds or fails permanently. The error is the last one.
func retryTransient(ctx context.Context, do func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, retryBackoff, func(ctx context.Context) (bool, error) {
		if last = do(ctx); isTransient(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// isTransient reports whether an error is temporary: kcp's controllers write to new objects at once, and a new workspace becomes
// ready shortly before it serves all its APIs.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsServiceUnavailable(err) || meta.IsNoMatchError(err) || isExportNotVisibleYet(err)
}

// isExportNotVisibleYet reports whether kcp rejected a workspace type because its admission does not have the new exports
// in its cache yet.
func isExportNotVisibleYet(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no permission to bind to export")
}

// describeError wraps an error with the failed operation and, for a missing permission, with who may perform it.
func describeError(err error, verb, what, workspace string) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("this user may not %s %s %s; use the kubeconfig of an administrator of that workspace: %w", verb, what, workspace, err)
	}
	return fmt.Errorf("cannot %s %s %s: %w", verb, what, workspace, err)
}

// ensureSchemas creates the schemas of our own kinds. They are immutable: a schema with another content has another name.
func (s *bootstrapper) ensureSchemas(ctx context.Context) error {
	for _, schema := range slices.Concat(schemas.InventorySchemas(), schemas.MailboxSchemas(), schemas.WorkloadSchemas()) {
		result, err := s.ensureSchema(ctx, schema)
		if err != nil {
			return describeError(err, "create", "APIResourceSchema "+schema.Name+" in", s.Workspace)
		}
		if err := s.report("APIResourceSchema", schema, result); err != nil {
			return err
		}
	}
	return nil
}

func (s *bootstrapper) ensureSchema(ctx context.Context, schema *apisv1alpha1.APIResourceSchema) (result controllerutil.OperationResult, err error) {
	result = controllerutil.OperationResultCreated
	if s.isMissing {
		return result, nil
	}
	err = retryTransient(ctx, func(ctx context.Context) error {
		err := s.client.Create(ctx, schema.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			result, err = controllerutil.OperationResultNone, nil
		}
		return err
	})
	return result, err
}

func (s *bootstrapper) ensureInventoryExport(ctx context.Context) error {
	return s.ensureExport(ctx, synchubv1alpha1.InventoryExport, schemas.InventorySchemas(), secrets, events, logicalClusters)
}

func (s *bootstrapper) ensureMailboxExport(ctx context.Context) error {
	return s.ensureExport(ctx, synchubv1alpha1.MailboxExport, schemas.MailboxSchemas(), namespaces, events, logicalClusters)
}

func (s *bootstrapper) ensureWorkloadExport(ctx context.Context) error {
	return s.ensureExport(ctx, synchubv1alpha1.WorkloadExport, schemas.WorkloadSchemas(), WorkloadClaims()...)
}

func (s *bootstrapper) ensureExport(ctx context.Context, name string, own []*apisv1alpha1.APIResourceSchema, claims ...schema.GroupResource) error {
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return createOrUpdate(ctx, s, "APIExport", export, func(export *apisv1alpha2.APIExport) {
		for _, schema := range own {
			setResourceSchema(&export.Spec, schema)
		}
		for _, claim := range claims {
			addPermissionClaim(&export.Spec, claim)
		}
	})
}

func setResourceSchema(spec *apisv1alpha2.APIExportSpec, schema *apisv1alpha1.APIResourceSchema) {
	wanted := apisv1alpha2.ResourceSchema{
		Group: schema.Spec.Group, Name: schema.Spec.Names.Plural, Schema: schema.Name,
		Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	}
	for i := range spec.Resources {
		if spec.Resources[i].Group == wanted.Group && spec.Resources[i].Name == wanted.Name {
			spec.Resources[i] = wanted
			return
		}
	}
	spec.Resources = append(spec.Resources, wanted)
}

func addPermissionClaim(spec *apisv1alpha2.APIExportSpec, resource schema.GroupResource) {
	if slices.ContainsFunc(spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool {
		return claim.Group == resource.Group && claim.Resource == resource.Resource
	}) {
		return
	}
	spec.PermissionClaims = append(spec.PermissionClaims, apisv1alpha2.PermissionClaim{
		GroupResource: apisv1alpha2.GroupResource{Group: resource.Group, Resource: resource.Resource},
		Verbs:         []string{"*"},
	})
}

// appendIfMissing returns the items, with the item appended unless it is among them.
func appendIfMissing[T comparable](items []T, item T) []T {
	if slices.Contains(items, item) {
		return items
	}
	return append(items, item)
}

// ensureHashKey creates the key once and never changes it: with another key, all marks would look outdated.
func (s *bootstrapper) ensureHashKey(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: HashKeyNamespace, Name: HashKeySecret}}
	var failed error
	err := createOrUpdate(ctx, s, "Secret", secret, func(secret *corev1.Secret) {
		if len(secret.Data[HashKey]) > 0 {
			return
		}
		key := make([]byte, 32)
		_, failed = rand.Read(key)
		secret.Data = map[string][]byte{HashKey: key}
	})
	return errors.Join(err, failed)
}

// ensureLedgerNamespace creates the namespace of the ledger, in which the hub stores the state of its SyncTargets.
func (s *bootstrapper) ensureLedgerNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ledger.Namespace}}
	return createOrUpdate(ctx, s, "Namespace", namespace, func(*corev1.Namespace) {})
}
