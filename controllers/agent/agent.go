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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/copystates"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Options configure an agent.
type Options struct {
	// Namespace is the agent's own namespace. It is protected, and holds the agent's ledger.
	Namespace string
	// Credentials are those of the agent's Secret.
	Credentials *Credentials
	// Target is a client config for the agent's own cluster.
	Target *rest.Config
	// Kubeconfig returns the kubeconfig of the agent's own cluster. It may change, as tokens do.
	Kubeconfig func() ([]byte, error)
	// Fence refuses writes while this replica does not hold the Lease of the agent's own cluster; nil refuses none.
	Fence *fence.Fence

	TargetLimits      kcp.Limits
	MailboxLimits     mailboxes.Limits
	MailboxBytes      int64
	AbsenceDelays     absence.Delays
	TargetCacheLimits targets.CacheLimits
	Clock             clock.WithTicker
	Log               logr.Logger
}

// ErrRestart means that the agent must be started again, since it cannot go on with what it was started with: its assignment, its Secret,
// or its claim to the mailbox.
var ErrRestart = errors.New("the agent starts again")

// Setup adds the agent to the manager of its own cluster. assigned is the first assignment.
func Setup(cluster manager.Manager, assigned *assignment.Assignment, options Options) error {
	var connectionChanged, stateChanged, objectsChanged, unauthorized, copiesWritten topic.Topic[types.UID]
	var copies topic.Topic[objectsync.ObjectRef]
	direct, err := client.New(cluster.GetConfig(), client.Options{Scheme: cluster.GetScheme(), HTTPClient: cluster.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("cannot make a client for the agent's own cluster: %w", err)
	}
	credentials := options.Credentials
	inMailbox, err := newCoreClient(credentials.Access.WorkspaceConfig(credentials.Mailbox))
	if err != nil {
		return err
	}
	sealer := ownership.NewSealer(credentials.Key)
	state := ledger.New(ledger.Options{Namespace: options.Namespace, Client: direct, Reader: direct, Clock: options.Clock, Log: options.Log.WithName("ledger")})
	history := storehistory.New(storehistory.Options{Client: direct, Reader: direct, Namespace: options.Namespace, IsAgent: true, Clock: options.Clock, Log: options.Log.WithName("history")})
	cachePolicy := syncmanager.NewCachePolicy(options.MailboxLimits, options.Log.WithName("sync"))
	boxes := mailboxes.New(mailboxes.Options{
		Access: credentials.Access, Only: &mailboxes.OnlyMailbox{Cluster: logicalcluster.Name(assigned.Mailbox), BindingSelector: assigned.BindingSelector},
		Resources: syncmanager.ConfigResources, Policy: cachePolicy, MaxBytes: options.MailboxBytes, AbsenceDelays: options.AbsenceDelays, History: history,
		Clock: options.Clock, Log: options.Log.WithName("mailbox"),
	})
	registry := targets.NewRegistry(targets.Options{
		FieldManager: ownership.FieldManager(assigned.Hub), Limits: options.TargetLimits, Clock: options.Clock, Log: options.Log.WithName("target"),
		OnChange: connectionChanged.Publish, OnUnauthorized: unauthorized.Publish, CacheLimits: options.TargetCacheLimits, Fence: func(types.UID) *fence.Fence { return options.Fence },
	})
	sync := syncmanager.New(syncmanager.Options{
		Mailboxes: boxes, CachePolicy: cachePolicy, WrittenResourceStore: syncmanager.LedgerWrittenResourceStore{Store: state}, KnownSyncTargets: state.SyncTargets,
		Hub: assigned.Hub, Hasher: ownership.NewHasher(credentials.MarkKey), Sealer: ownership.NewSealer(credentials.MarkKey), ProtectedNamespaces: protectedNamespaces(assigned, options.Namespace),
		History: history, StateChanged: &stateChanged, ObjectsChanged: &objectsChanged, ObjectStateChanged: &copies,
		Checker: schemacheck.NewChecker(options.Clock), Clock: options.Clock, Log: options.Log.WithName("sync"),
	})
	writer := copystates.NewWriter(copystates.WriterOptions{
		Storage: copystates.MailboxStorage(inMailbox), Sync: sync, Sealer: sealer, ObjectStateChanged: &copies, Written: &copiesWritten,
		Clock: options.Clock, Log: options.Log.WithName("copystates"),
	})
	runner := &runner{
		Options: options, sealer: sealer, first: assigned, cluster: direct, mailboxes: boxes, engine: sync, copies: writer, ledger: state, compiler: publishedresource.NewCompiler(),
		local:   synctarget.Options{Registry: registry, Sync: sync, Ledger: state, History: history, Clock: options.Clock, Log: options.Log.WithName("synctarget")},
		changes: []*topic.Topic[types.UID]{&connectionChanged, &stateChanged, &unauthorized, &copiesWritten},
		wake:    make(chan struct{}, 1),
	}
	history.OnChange = runner.wakeUp
	return errors.Join(
		cluster.Add(history), cluster.Add(state), cluster.Add(boxes), cluster.Add(registry),
		sync.Register(cluster),
		writer.Register(cluster),
		syncerconfig.NewController(boxes, sync, options.Clock, options.Log.WithName("syncerconfig")).Register(cluster),
		cluster.Add(runner),
	)
}

// protectedNamespaces returns the namespaces that the hub protects, and the agent's own.
func protectedNamespaces(assigned *assignment.Assignment, own string) policy.NamespacePatterns {
	return append(slices.Clone(policy.NamespacePatterns(assigned.ProtectedNamespaces)), own)
}

// isSameInstance reports whether an agent that was started with one assignment can go on with another.
func isSameInstance(first, next *assignment.Assignment) bool {
	return first.Hub == next.Hub && first.Mailbox == next.Mailbox && first.BindingSelector == next.BindingSelector && first.SyncTarget.UID == next.SyncTarget.UID &&
		slices.Equal(first.ProtectedNamespaces, next.ProtectedNamespaces)
}

// AwaitAssignment reads assignments until one is the hub's. While kcp cannot be reached it goes on to try, until ctx ends. Meanwhile it renews
// the credentials, and takes over a Secret that an operator has changed. The error is [ErrRestart] if the agent must be started again for that.
func AwaitAssignment(ctx context.Context, credentials *Credentials, secrets coreclient.SecretsGetter, log logr.Logger) (*assignment.Assignment, error) {
	config := credentials.Access.WorkspaceConfig(credentials.Mailbox)
	core, err := newCoreClient(config)
	if err != nil {
		return nil, err
	}
	last := ""
	for {
		found, err := getAssignment(ctx, core)
		if err == nil {
			var assigned *assignment.Assignment
			if assigned, err = openAssignment(credentials, found); err == nil {
				return assigned, nil
			}
		}
		if text := err.Error(); text != last {
			log.Info("waiting for the assignment of the hub", "reason", strings.TrimSpace(text))
			last = text
		}
		if err := credentials.renewIfDue(ctx, secrets, time.Now(), log); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(awaitInterval):
		}
	}
}

func getAssignment(ctx context.Context, core coreclient.CoreV1Interface) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return core.ConfigMaps(assignment.Namespace).Get(ctx, assignment.ConfigMap, metav1.GetOptions{})
}

// awaitInterval is the time between two attempts to read the first assignment.
const awaitInterval = 2 * time.Second

// InClusterKubeconfig returns a kubeconfig of the cluster in which the agent runs, with the present token of its Pod.
func InClusterKubeconfig() ([]byte, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("set --kubeconfig, since this does not run in a cluster: %w", err)
	}
	return kubeconfigOf(config)
}
