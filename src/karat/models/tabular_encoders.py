"""Encoders of table rows, at the place where definitions and users import them from.

The private functions are steps of encoders that earlier versions have pickled.
"""

from karat.models.out_of_fold import OutOfFold as OutOfFold
from karat.models.random_encoder import RandomEncoder as RandomEncoder
from karat.models.tables.forest_encoders import ForestLeaves as ForestLeaves
from karat.models.tables.forest_encoders import ForestScores as ForestScores
from karat.models.tables.hashed_table import HashedTable as HashedTable
from karat.models.tables.hashed_table import HashedWords as HashedWords
from karat.models.tables.min_hash_table import MinHashes as MinHashes
from karat.models.tables.min_hash_table import MinHashTable as MinHashTable
from karat.models.tables.min_hash_table import min_hashes as min_hashes
from karat.models.tables.one_hot_pca import OneHotPca as OneHotPca
from karat.models.tables.one_hot_table import OneHotTable as OneHotTable
from karat.models.tables.one_hot_table import OneHotWords as OneHotWords
from karat.models.tables.one_hot_table import table_to_numbers as table_to_numbers
from karat.models.tables.ordinal_table import OrdinalTable as OrdinalTable
from karat.models.tables.ordinal_table import ordinal_words as ordinal_words
from karat.models.tables.row_sentences import RowSentences as RowSentences
from karat.models.tables.skrub_table import SkrubTable as SkrubTable
from karat.models.tables.string_table import StringColumns as StringColumns
from karat.models.tables.string_table import StringTable as StringTable
from karat.models.tables.target_table import TargetTable as TargetTable
from karat.models.tables.typed_columns import ColumnEncoder as ColumnEncoder
from karat.models.tables.typed_columns import FittedInTransform as FittedInTransform
from karat.models.tables.typed_columns import TypedColumns as TypedColumns
from karat.models.tables.typed_columns import _date_components as _date_components
from karat.models.tables.typed_columns import _floats as _floats
from karat.models.tables.typed_columns import _words as _words
from karat.models.tables.typed_columns import scaled as scaled
from karat.models.tables.typed_columns import scaled_numbers as scaled_numbers
