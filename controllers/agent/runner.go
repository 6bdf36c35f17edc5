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

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/copystates"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

const (
	// passInterval is how often the agent looks at its connections and its assignment without an event.
	passInterval = 5 * time.Second
	// requestTimeout bounds a request to kcp, which may be out of reach.
	requestTimeout = 10 * time.Second
)

// runner puts assignments into force, and reports. It runs on the replica that leads.
type runner struct {
	Options
	sealer    *ownership.Sealer
	first     *assignment.Assignment
	cluster   client.Client
	mailboxes *mailboxes.Mailboxes
	engine    *syncmanager.Manager
	copies    *copystates.Writer
	ledger    *ledger.Store
	compiler  *publishedresource.Compiler
	local     synctarget.Options
	// changes wake the runner.
	changes []*topic.Topic[types.UID]
	// wake has an entry if something has changed.
	wake chan struct{}

	clusterCore        coreclient.CoreV1Interface
	reports            *reporter
	assignmentInformer cache.SharedIndexInformer
	// inForce is the assignment that the agent acts on. read is the version of the ConfigMap that was read last, and problem why it
	// is not in force.
	inForce              *assignment.Assignment
	readVersion, problem string
	// rulesProblem says which rules of the assignment in force are not.
	rulesProblem string
	schemas      map[schema.GroupResource]schemacheck.Schema
	syncTarget   *synctarget.AgentReconciler
	// status is the one that was reported last before a restart.
	status edgev2alpha1.SyncTargetStatus
	// logged is the error of the last pass, or empty.
	logged string
}

func (r *runner) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Start runs the agent until ctx ends. It returns [ErrRestart] if the process must be started again.
func (r *runner) Start(ctx context.Context) error {
	if err := r.makeClients(); err != nil {
		return err
	}
	if r.ledger.WaitForLoad(ctx) != nil {
		// The agent ends.
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { r.assignmentInformer.RunWithContext(ctx) })
	for _, change := range r.changes {
		change.Subscribe(ctx, func(types.UID) { r.wakeUp() })
	}
	ticker := r.Clock.NewTicker(passInterval)
	defer ticker.Stop()
	for {
		err := r.pass(ctx)
		if errors.Is(err, ErrRestart) {
			return err
		}
		r.logChanged(ctx, err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-r.wake:
		}
	}
}

// logChanged logs the error of a pass, unless that of the pass before was the same. An agent that kcp does not hear has only its log.
func (r *runner) logChanged(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.logged && ctx.Err() == nil {
		r.Log.Info("this is tried again", "error", text)
	}
	r.logged = text
}

func (r *runner) makeClients() error {
	config := r.Credentials.Access.WorkspaceConfig(r.Credentials.Mailbox)
	core, err := newCoreClient(config)
	if err != nil {
		return err
	}
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client for %s: %w", config.Host, err)
	}
	if r.clusterCore, err = newCoreClient(r.Target); err != nil {
		return err
	}
	r.reports = &reporter{leases: leases.Leases(assignment.Namespace), sealer: r.sealer, mailbox: r.Credentials.Mailbox, syncTarget: r.first.SyncTarget.UID, expected: r.first.Cluster}
	r.assignmentInformer = cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(core.RESTClient(), "configmaps", assignment.Namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, assignment.ConfigMap)),
		&corev1.ConfigMap{}, 0, cache.Indexers{})
	_, err = r.assignmentInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.wakeUp() }, UpdateFunc: func(any, any) { r.wakeUp() }, DeleteFunc: func(any) { r.wakeUp() },
	})
	return err
}

// pass does once all that there is to do.
func (r *runner) pass(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.readAssignment(ctx); err != nil {
		return err
	}
	report := &assignment.Report{Problem: cmp.Or(r.problem, r.rulesProblem), Cluster: r.reports.cluster, Copies: r.copies.Sequence(r.first.SyncTarget.UID)}
	if r.inForce == nil {
		if r.problem == "" {
			// The assignment is still being read.
			return nil
		}
		report.Status = r.status
		return r.report(ctx, report)
	}
	kubeconfig, err := r.Kubeconfig()
	if err != nil {
		return err
	}
	report.Assignment = r.inForce.Sequence
	report.Status, report.Finished, err = r.syncTarget.Reconcile(ctx, r.inForce, kubeconfig)
	return errors.Join(err, r.report(ctx, report))
}

// report writes a report, if one is due. If an agent in another cluster has claimed the mailbox meanwhile, the error is [ErrRestart]: the
// agent must stop the sync, and an agent that has just started stays idle while the other one reports.
func (r *runner) report(ctx context.Context, report *assignment.Report) error {
	err := r.reports.write(ctx, report, r.Clock.Now())
	if errors.Is(err, ErrOtherCluster) {
		return fmt.Errorf("%w: %w", err, ErrRestart)
	}
	return err
}

// prepare renews the token from time to time, and reads, once, the identity of the cluster and the last report. Another replica may
// have renewed the token, so that comes first.
func (r *runner) prepare(ctx context.Context) error {
	if err := r.Credentials.renewIfDue(ctx, r.clusterCore, r.Clock.Now(), r.Log); err != nil {
		return err
	}
	if r.syncTarget == nil {
		if err := r.local.History.Load(ctx); err != nil {
			return err
		}
		var system corev1.Namespace
		if err := r.cluster.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
			return fmt.Errorf("cannot read the namespace %s of the agent's own cluster: %w", metav1.NamespaceSystem, err)
		}
		r.reports.cluster = string(system.UID)
		last, err := r.reports.claim(ctx, r.Clock.Now())
		if err != nil {
			return err
		}
		if last != nil && last.Cluster == r.reports.cluster {
			r.status = last.Status
			if err := synctarget.RestoreLedger(ctx, r.ledger, r.first, r.status); err != nil {
				return err
			}
		}
		r.syncTarget = synctarget.NewAgentReconciler(r.local, r.status)
	}
	return nil
}

// openAssignment returns the assignment in a ConfigMap of the mailbox, if the hub has sealed it.
func openAssignment(credentials *Credentials, stored *corev1.ConfigMap) (*assignment.Assignment, error) {
	return assignment.OpenAssignment(ownership.NewSealer(credentials.Key), credentials.Mailbox, stored.BinaryData[assignment.AssignmentKey], stored.Data[assignment.SealKey])
}

// readAssignment puts the stored assignment into force, if it is the hub's and not older than one that was in force before.
func (r *runner) readAssignment(ctx context.Context) error {
	found, exists, err := r.assignmentInformer.GetStore().GetByKey(assignment.Namespace + "/" + assignment.ConfigMap)
	if err != nil {
		return err
	}
	if !exists {
		if r.assignmentInformer.HasSynced() {
			r.problem, r.readVersion = fmt.Sprintf("the ConfigMap %s/%s of the mailbox is not there", assignment.Namespace, assignment.ConfigMap), ""
		}
		return nil
	}
	stored := found.(*corev1.ConfigMap)
	if stored.ResourceVersion == r.readVersion {
		return nil
	}
	next, err := openAssignment(r.Credentials, stored)
	if err != nil {
		r.refuse(stored, fmt.Sprintf("the ConfigMap %s/%s of the mailbox is not the hub's: %v", stored.Namespace, stored.Name, err))
		return nil
	}
	// This comes first: an assignment that was put back must not make the agent start again and again.
	if last := r.ledger.Get(next.SyncTarget.UID).Assignment; next.Sequence < last {
		r.refuse(stored, fmt.Sprintf("the ConfigMap %s/%s of the mailbox has an assignment that was replaced before", stored.Namespace, stored.Name))
		return nil
	}
	if !isSameInstance(r.first, next) {
		return fmt.Errorf("the assignment is for another hub or SyncTarget: %w", ErrRestart)
	}
	if err := r.ledger.Update(ctx, next.SyncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.Mailbox, entry.Assignment = next.SyncTarget.Name, next.SyncTarget.Inventory, next.Mailbox, next.Sequence
		if next.Cluster != "" && next.Cluster != entry.Cluster.ID {
			entry.Cluster = ledger.Cluster{ID: next.Cluster}
		}
	}); err != nil {
		return err
	}
	r.problem, r.reports.expected = "", next.Cluster
	if r.inForce == nil || r.inForce.Sequence != next.Sequence {
		r.publish(next)
	}
	r.inForce, r.readVersion = next, stored.ResourceVersion
	return nil
}

// refuse notes why an assignment is not put into force. The one so far stays in force.
func (r *runner) refuse(stored *corev1.ConfigMap, problem string) {
	r.problem, r.readVersion = problem, stored.ResourceVersion
	r.Log.Info("an assignment is refused, the one so far stays in force", "reason", problem)
}

// publish passes the rules of an assignment to the engine.
func (r *runner) publish(next *assignment.Assignment) {
	r.rulesProblem = ""
	resources, err := next.Rules.Compile(r.compiler)
	if err != nil {
		r.Log.Error(err, "some rules cannot be compiled, their objects stay as they are")
		r.rulesProblem = "some rules cannot be compiled: " + err.Error()
	}
	r.mailboxes.SetResourceLimits(next.Rules.CacheLimits())
	r.mailboxes.SetResources(next.Rules.Watched)
	schemas := next.Rules.CheckedSchemas()
	for resource, before := range r.schemas {
		// An equal schema stays the same one, so that it is not compared again.
		if after, ok := schemas[resource]; ok && after.ID() == before.ID() && after.WarnOnly == before.WarnOnly {
			schemas[resource] = before
		}
	}
	if !maps.Equal(schemas, r.schemas) {
		r.schemas = schemas
		r.engine.SetSchemas(schemas)
	}
	r.engine.SetCRDs(next.Rules.Installations())
	if !r.engine.HasPublished() || !slices.Equal(resources, r.engine.Published()) {
		r.engine.Publish(resources)
	}
}
