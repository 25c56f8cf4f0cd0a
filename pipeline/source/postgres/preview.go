package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/source"
)

var _ source.Previewer = (*Source)(nil)

// maxClients bounds how many sessions a preview names.
const maxClients = 20

// previewer is the attempt under which a preview's sessions run.
var previewer = source.Attempt{Task: "preview", Token: 1}

// Preview implements source.Previewer.
func (s *Source) Preview(ctx context.Context, o source.RestoreOptions) (source.Preview, error) {
	doing := fmt.Sprintf("look at database %q", o.Target)
	if err := errors.Join(checkTarget(o.Target, s.maintenanceName()), checkJobs(o.Jobs)); err != nil {
		return source.Preview{}, fmt.Errorf("%s: %w", doing, err)
	}
	if err := s.previewChecks(ctx, o); err != nil {
		return source.Preview{}, s.wrap(ctx, err, "%s", doing)
	}
	p, err := s.look(ctx, o.Target)
	return p, s.wrap(ctx, err, "%s", doing)
}

// previewChecks are those that the restore would begin with.
func (s *Source) previewChecks(ctx context.Context, o source.RestoreOptions) error {
	if o.InPlace {
		if err := inPlaceFits(o); err != nil {
			return err
		}
		conn, err := s.inItself(ctx, previewer, o.Target)
		if err != nil {
			return err
		}
		defer conn.close()
		_, err = (&inPlace{src: s, attempt: previewer, options: o}).preflight(ctx, conn)
		return err
	}
	conn, err := s.maintain(ctx, previewer)
	if err != nil {
		return err
	}
	defer conn.close()
	return (&restore{src: s, attempt: previewer, options: o}).preflight(ctx, conn)
}

// look tells what has the target's name now.
func (s *Source) look(ctx context.Context, target string) (p source.Preview, err error) {
	conn, err := s.maintain(ctx, previewer)
	if err != nil {
		return p, err
	}
	defer conn.close()
	err = conn.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1), count(oid) > 0,
			coalesce(sum(CASE WHEN has_database_privilege(oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'USAGE') THEN pg_database_size(oid) END), 0)::bigint
		FROM pg_database WHERE datname = $1`, target).Scan(&p.Server, &p.Exists, &p.Bytes)
	if err != nil {
		return p, err
	}
	clients, err := texts(ctx, conn, `SELECT concat_ws('/', coalesce(usename::text, 'somebody'), nullif(application_name, ''))
		FROM pg_stat_activity WHERE datname = $1 AND usesysid IS NOT NULL AND pid <> pg_backend_pid() AND application_name !~ '^fencepost:' ORDER BY 1`, target)
	if err != nil {
		return p, err
	}
	p.Clients = clients[:min(len(clients), maxClients)]
	p.More = len(clients) - len(p.Clients)
	return p, nil
}
