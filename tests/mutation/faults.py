"""All faults (see ``planted.py``), by topic."""

import faults_database
import faults_departures
import faults_discovery
import faults_extremes
import faults_families
import faults_files
import faults_labels
import faults_laws
import faults_ledger
import faults_noise
import faults_panels
import faults_siblings
import faults_sources
import faults_timings
import faults_together
import faults_tree
import faults_trees
import faults_units
import faults_whole

FAULTS = (
    *faults_noise.FAULTS,
    *faults_sources.FAULTS,
    *faults_discovery.FAULTS,
    *faults_families.FAULTS,
    *faults_files.FAULTS,
    *faults_ledger.FAULTS,
    *faults_labels.FAULTS,
    *faults_laws.FAULTS,
    *faults_timings.FAULTS,
    *faults_together.FAULTS,
    *faults_tree.FAULTS,
    *faults_panels.FAULTS,
    *faults_siblings.FAULTS,
    *faults_trees.FAULTS,
    *faults_units.FAULTS,
    *faults_database.FAULTS,
    *faults_whole.FAULTS,
    *faults_departures.FAULTS,
    *faults_extremes.FAULTS,
)
