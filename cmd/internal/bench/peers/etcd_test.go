package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/fencepost/fencepost/cmd/internal/bench/locks"
)

const etcdKind = "etcd"

// etcdConfig is what one server's process is told; addresses are URLs.
type etcdConfig struct{ Name, Dir, Peer, Client, Cluster string }

// serveEtcd is one server, as its own program would start it.
func serveEtcd(ctx context.Context, text []byte, ready func()) error {
	var c etcdConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	peer, err := url.Parse(c.Peer)
	if err != nil {
		return err
	}
	client, err := url.Parse(c.Client)
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = c.Name, c.Dir, c.Cluster
	cfg.LogLevel, cfg.LogOutputs = "warn", []string{c.Dir + ".log"}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
		ready()
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

// etcdPeer is three servers and this process's one connection to them.
type etcdPeer struct {
	client  *clientv3.Client
	servers func() error
}

func startEtcd(_ context.Context, dir string) (*etcdPeer, error) {
	at, err := locks.FreeAddresses(6)
	if err != nil {
		return nil, err
	}
	var configs []etcdConfig
	var cluster, endpoints []string
	for i := range 3 {
		name := fmt.Sprintf("e%d", i+1)
		c := etcdConfig{Name: name, Dir: filepath.Join(dir, name), Peer: "http://" + at[i], Client: "http://" + at[3+i]}
		configs = append(configs, c)
		cluster, endpoints = append(cluster, name+"="+c.Peer), append(endpoints, c.Client)
	}
	for i := range configs {
		configs[i].Cluster = strings.Join(cluster, ",")
	}
	stop, err := locks.SpawnAll(etcdKind, configs)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &etcdPeer{client: client, servers: stop}, nil
}

func (e *etcdPeer) stop() error { return errors.Join(e.client.Close(), e.servers()) }

func (e *etcdPeer) Client(ctx context.Context) (locks.Client, error) {
	s, err := concurrency.NewSession(e.client, concurrency.WithContext(ctx))
	return etcdClient{s}, err
}

type etcdClient struct{ session *concurrency.Session }

func (c etcdClient) TryLock(ctx context.Context, name string) (locks.Unlock, error) {
	m := concurrency.NewMutex(c.session, "/"+name)
	return m.Unlock, m.TryLock(ctx)
}

func (c etcdClient) Lock(ctx context.Context, name string) (locks.Unlock, error) {
	m := concurrency.NewMutex(c.session, "/"+name)
	return m.Unlock, m.Lock(ctx)
}

func (c etcdClient) Close() error { return c.session.Close() }
